/* The C runtime's functions of complex numbers, which Wine 8 lacks and NumPy calls.

   MSVC's _Fcomplex and _Dcomplex are structs to whoever calls; its long double is a double. */
#include <complex.h>

struct pair { double re, im; };
struct pairf { float re, im; };

#define OF(z) __builtin_complex((z).re, (z).im)
#define TO_NUMBER(name)                                                                            \
    double own_##name(struct pair z) { return name(OF(z)); }                                       \
    float own_##name##f(struct pairf z) { return name##f(OF(z)); }
#define TO_COMPLEX(name)                                                                           \
    struct pair own_##name(struct pair z) {                                                        \
        double complex w = name(OF(z));                                                            \
        return (struct pair){__real__ w, __imag__ w};                                              \
    }                                                                                              \
    struct pairf own_##name##f(struct pairf z) {                                                   \
        float complex w = name##f(OF(z));                                                          \
        return (struct pairf){__real__ w, __imag__ w};                                             \
    }

TO_NUMBER(cabs) TO_NUMBER(carg) TO_NUMBER(cimag) TO_NUMBER(creal)
TO_COMPLEX(ccos) TO_COMPLEX(ccosh) TO_COMPLEX(cexp) TO_COMPLEX(clog) TO_COMPLEX(csin)
TO_COMPLEX(csinh) TO_COMPLEX(csqrt) TO_COMPLEX(ctan) TO_COMPLEX(ctanh)

struct pair own_cpow(struct pair z, struct pair exponent) {
    double complex w = cpow(OF(z), OF(exponent));
    return (struct pair){__real__ w, __imag__ w};
}
struct pairf own_cpowf(struct pairf z, struct pairf exponent) {
    float complex w = cpowf(OF(z), OF(exponent));
    return (struct pairf){__real__ w, __imag__ w};
}

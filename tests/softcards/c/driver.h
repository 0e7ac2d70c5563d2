/* What the files of the driver stand-in share: how an entry point begins. */
#pragma once
#include "softcards.h"

#include <cuda.h>

int driver_enter(const char *name);
int driver_context(void);

#define ENTER()                                                                                    \
    do {                                                                                           \
        int entered = driver_enter(__func__);                                                      \
        if (entered != 0) {                                                                        \
            return (CUresult)entered;                                                              \
        }                                                                                          \
    } while (0)

/* The soft PC behind the stand-ins: its cards, memory, streams and faults.
 *
 * libsoftcards.so holds this state once per process; the stand-ins for the CUDA runtime, the driver,
 * cuBLAS and NVML are thin layers of NVIDIA's names over it. Numbers returned as int are CUDA error
 * codes (0 is success), which the runtime and the driver share. Times are CLOCK_MONOTONIC
 * nanoseconds, sizes are bytes. A card is named by its index in the configuration, which is PCI bus
 * order and therefore also its NVML index.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOFT_CARDS = 16, SOFT_PROCESSES = 64 };
#define MIB (1ull << 20)
#define NEVER UINT64_MAX

enum {
    SOFT_INVALID_VALUE = 1,
    SOFT_OUT_OF_MEMORY = 2,
    SOFT_NOT_INITIALIZED = 3,
    SOFT_INVALID_CONFIGURATION = 9,
    SOFT_INSUFFICIENT_DRIVER = 35,
    SOFT_DEVICES_UNAVAILABLE = 46,
    SOFT_NO_DEVICE = 100,
    SOFT_INVALID_DEVICE = 101,
    SOFT_NO_KERNEL_IMAGE = 209,
    SOFT_INVALID_HANDLE = 400,
    SOFT_NOT_FOUND = 500,
    SOFT_NOT_READY = 600,
    SOFT_LAUNCH_FAILURE = 719,
    SOFT_NOT_SUPPORTED = 801,
    SOFT_CAPTURE_UNSUPPORTED = 900,
};

/* config.c: what the test wrote, read again whenever it changes. */
typedef struct {
    char key[40];
    char *value;
} Field;

typedef struct {
    uint32_t pid;
    uint64_t bytes;
    bool graphics;
} OtherProcess;

typedef struct {
    Field field[96];
    int fields;
    OtherProcess other[16];
    int others;
    uint64_t kernel_ns; /* these three are asked for at every launch */
    int capability;
    bool is_lost;
} Card;

typedef struct {
    char name[64];   /* an exported name; a trailing '*' matches any rest; "launch" is every launch */
    int code;
    int card;        /* -1: every card */
    uint64_t after;  /* calls that still succeed */
    bool sticky;     /* the context is lost from then on */
    bool late;       /* a launch itself succeeds; the error comes once its kernel has run */
    bool hang;       /* the call never returns; a launch never ends */
    bool set_device; /* a sticky code also comes from cudaSetDevice and cudaGetDevice */
} Rule;

typedef struct {
    Card card[SOFT_CARDS];
    int cards;
    Rule rule[32];
    int rules;
    char driver_version[32];
    int cuda_driver;
    uint64_t serial; /* differs for every version read */
} Config;

const Config *soft_config(void);
const char *soft_text(const Card *card, const char *key, const char *otherwise);
bool soft_has(const Card *card, const char *key);
bool soft_is_auto(const Card *card, const char *key);
uint64_t soft_number(const Card *card, const char *key, uint64_t otherwise);

/* usage.c: memory and activity of every process on the soft PC, in a file they all map. */
typedef struct {
    uint64_t bytes;
    uint64_t launches;
    uint64_t waits;
    uint64_t allocations;
    uint64_t busy_until_ns;
    uint64_t copied_in_bytes;
    uint64_t copied_out_bytes;
    uint64_t has_context;
} Share;

typedef struct {
    int32_t pid;
    uint32_t unused;
    uint64_t started;
    Share card[SOFT_CARDS];
} Process;

typedef struct {
    uint64_t generation; /* raised by the test when it has changed the configuration */
    uint64_t unused[7];
    Process process[SOFT_PROCESSES];
} Usage;

const Usage *soft_usage(void);
Share *soft_share(int card);
bool soft_alive(const Process *process);
bool soft_usage_lock(void);
void soft_usage_unlock(void);
uint64_t soft_free_bytes(int card);
int soft_take(int card, uint64_t bytes);
void soft_give(int card, uint64_t bytes);
bool soft_is_busy(int card);

/* devices.c: CUDA's numbers for the cards, and the contexts of this process. */
int soft_start(int runtime_version);
int soft_device_count(void);
int soft_card_of(int device);
int soft_device_of(int card);
int soft_current_device(void);
int soft_current_card(void);
int soft_set_device(int device);
int soft_context(int card);
bool soft_has_context(int card);
int soft_attribute(int card, int attribute, int *value);
void soft_pci(const Card *card, unsigned *domain, unsigned *bus, unsigned *device);
void soft_uuid_bytes(const Card *card, unsigned char bytes[16]);
void soft_lock(void);
void soft_unlock(void);

/* faults.c */
int soft_fault(const char *name, int card);
int soft_launch_fault(int card, uint64_t *duration_ns, uint64_t *late_code);
int soft_sticky(int card);
bool soft_sticky_reaches_set_device(int card);
void soft_break(int card, int code, uint64_t at_ns, bool set_device);
void soft_hang(void) __attribute__((noreturn));

/* memory.c and mapping.c */
typedef enum { RANGE_NONE, RANGE_DEVICE, RANGE_MAPPED, RANGE_PINNED, RANGE_REGISTERED } RangeKind;
typedef struct {
    uintptr_t base;
    uint64_t size;
    int card;
    RangeKind kind;
} Range;

int soft_malloc(int card, void **pointer, uint64_t size);
int soft_free(void *pointer);
int soft_pinned_alloc(void **pointer, uint64_t size);
int soft_pinned_free(void *pointer);
int soft_register(void *pointer, uint64_t size);
int soft_unregister(void *pointer);
bool soft_find(const void *pointer, Range *found);
void soft_remember(uintptr_t base, uint64_t size, int card, RangeKind kind);
bool soft_forget(uintptr_t base, RangeKind kind, Range *forgotten);
void *soft_window(int card, uint64_t size);
void soft_zero(void *pointer, uint64_t size);
void soft_fill(void *pointer, unsigned value, int width, uint64_t count);

int soft_physical_create(uint64_t *handle, int card, uint64_t size);
int soft_physical_release(uint64_t handle);
int soft_map(void *address, uint64_t size, uint64_t handle);
int soft_unmap(void *address, uint64_t size);

/* streams.c: a stream is the time until which it is busy; an event is a time on a stream. */
typedef struct Graph Graph;
typedef struct Stream {
    uint32_t magic;
    int card;
    unsigned flags;
    int priority;
    uint64_t until_ns;
    Graph *capture;
    bool is_origin;
    struct Stream *next;
} Stream;

typedef struct {
    uint32_t magic;
    int card;
    unsigned flags;
    bool is_recorded;
    uint64_t at_ns;
    Graph *capture;
} Event;

uint64_t soft_now(void);
Stream *soft_stream(const void *handle);
Stream *soft_stream_create(int card, unsigned flags, int priority);
int soft_stream_destroy(Stream *stream);
uint64_t soft_push(Stream *stream, uint64_t duration_ns);
uint64_t soft_card_until(int card);
void soft_wait_until(uint64_t at_ns);
int soft_wait_stream(Stream *stream);
int soft_wait_card(int card);
Event *soft_event_create(int card, unsigned flags);
int soft_event_record(Event *event, Stream *stream);
int soft_event_query(const Event *event);
int soft_event_wait(const Event *event);
int soft_event_elapsed(float *elapsed_ms, const Event *start, const Event *end);
int soft_stream_wait_event(Stream *stream, const Event *event);
int soft_host_function(Stream *stream, void (*function)(void *), void *argument);

/* copies.c */
int soft_copy(void *to, const void *from, uint64_t size, Stream *stream, bool waits);
int soft_set_memory(void *to, unsigned value, int width, uint64_t count, Stream *stream);

/* launch.c: code that the libraries registered, and launches of it. */
typedef struct Code Code;
Code *soft_register_code(const void *fat_binary);
void soft_register_kernel(Code *code, const void *host_function, const char *name);
const void *soft_kernel(const void *host_function);
int soft_kernel_status(int card, const void *host_function);
int soft_library_status(int card); /* of a library built for the same cards as the registered code */
int soft_launch(Stream *stream, const void *host_function, uint64_t blocks, uint64_t threads);

/* graphs.c */
struct Graph {
    struct Node *node;
    int nodes;
    int room;
    uint64_t id;
};
int soft_capture_begin(Stream *stream);
int soft_capture_end(Stream *stream, Graph **graph);
void soft_capture_kernel(Graph *graph, uint64_t kernels);
void soft_capture_copy(Graph *graph, void *to, const void *from, uint64_t size);
void soft_capture_fill(Graph *graph, void *to, unsigned value, int width, uint64_t count);
Graph *soft_graph_copy(const Graph *graph);
void soft_graph_free(Graph *graph);
int soft_graph_launch(const Graph *graph, Stream *stream);

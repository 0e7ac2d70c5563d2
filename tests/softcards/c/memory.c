/* Device and pinned memory: host pages at addresses that tell which card they belong to.
 *
 * Every card has a window of addresses, used in ascending order and never twice, so that ties
 * between equal blocks repeat from run to run. Pages come from the kernel when first touched.
 */
#include "softcards.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WINDOW_BASE 0x100000000000ull
#define WINDOW_SIZE 0x040000000000ull /* 4 TiB a card */

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static Range *range;
static int ranges;
static int room;
static uint64_t used_window[SOFT_CARDS + 1];

/* The number of ranges that begin at or below an address; the caller holds the lock. */
static int place_of(uintptr_t address) {
    int low = 0;
    int high = ranges;
    while (low < high) {
        int middle = (low + high) / 2;
        if (range[middle].base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void soft_remember(uintptr_t base, uint64_t size, int card, RangeKind kind) {
    pthread_mutex_lock(&ranges_lock);
    if (ranges == room) {
        room = room > 0 ? 2 * room : 256;
        range = realloc(range, (size_t)room * sizeof *range);
    }
    int place = place_of(base);
    memmove(&range[place + 1], &range[place], (size_t)(ranges - place) * sizeof *range);
    range[place] = (Range){base, size, card, kind};
    ranges++;
    pthread_mutex_unlock(&ranges_lock);
}

bool soft_forget(uintptr_t base, RangeKind kind, Range *forgotten) {
    pthread_mutex_lock(&ranges_lock);
    int place = place_of(base) - 1;
    bool is_found = place >= 0 && range[place].base == base && range[place].kind == kind;
    if (is_found) {
        *forgotten = range[place];
        ranges--;
        memmove(&range[place], &range[place + 1], (size_t)(ranges - place) * sizeof *range);
    }
    pthread_mutex_unlock(&ranges_lock);
    return is_found;
}

bool soft_find(const void *pointer, Range *found) {
    uintptr_t address = (uintptr_t)pointer;
    pthread_mutex_lock(&ranges_lock);
    int place = place_of(address) - 1;
    bool is_found = place >= 0 && address - range[place].base < range[place].size;
    if (is_found) {
        *found = range[place];
    }
    pthread_mutex_unlock(&ranges_lock);
    return is_found;
}

void *soft_window(int card, uint64_t size) {
    pthread_mutex_lock(&ranges_lock);
    uint64_t start = used_window[card];
    bool fits = start + size <= WINDOW_SIZE;
    used_window[card] += fits ? size : 0;
    pthread_mutex_unlock(&ranges_lock);
    return fits ? (void *)(WINDOW_BASE + (uint64_t)card * WINDOW_SIZE + start) : NULL;
}

static uint64_t whole_pages(uint64_t size) {
    /* The driver's granule since Pascal. */
    return (size + 2 * MIB - 1) & ~(2 * MIB - 1);
}

int soft_malloc(int card, void **pointer, uint64_t size) {
    *pointer = NULL;
    if (size == 0) {
        return 0;
    }
    uint64_t bytes = whole_pages(size);
    int code = bytes < size ? SOFT_OUT_OF_MEMORY : soft_take(card, bytes);
    if (code != 0) {
        return code;
    }
    void *address = soft_window(card, bytes);
    void *memory = MAP_FAILED;
    if (address != NULL) {
        memory = mmap(address, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    }
    if (memory == MAP_FAILED) {
        soft_give(card, bytes);
        return SOFT_OUT_OF_MEMORY;
    }
    soft_remember((uintptr_t)memory, bytes, card, RANGE_DEVICE);
    __atomic_fetch_add(&soft_share(card)->allocations, 1, __ATOMIC_RELAXED);
    *pointer = memory;
    return 0;
}

int soft_free(void *pointer) {
    Range freed;
    if (pointer == NULL) {
        return 0;
    }
    if (!soft_forget((uintptr_t)pointer, RANGE_DEVICE, &freed)) {
        return SOFT_INVALID_VALUE;
    }
    soft_wait_until(soft_card_until(freed.card));
    munmap(pointer, freed.size);
    soft_give(freed.card, freed.size);
    return 0;
}

int soft_pinned_alloc(void **pointer, uint64_t size) {
    *pointer = NULL;
    if (size == 0) {
        return 0;
    }
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return SOFT_OUT_OF_MEMORY;
    }
    soft_remember((uintptr_t)memory, size, soft_current_card(), RANGE_PINNED);
    *pointer = memory;
    return 0;
}

int soft_pinned_free(void *pointer) {
    Range freed;
    if (pointer == NULL) {
        return 0;
    }
    if (!soft_forget((uintptr_t)pointer, RANGE_PINNED, &freed)) {
        return SOFT_INVALID_VALUE;
    }
    munmap(pointer, freed.size);
    return 0;
}

int soft_register(void *pointer, uint64_t size) {
    if (pointer == NULL || size == 0) {
        return SOFT_INVALID_VALUE;
    }
    soft_remember((uintptr_t)pointer, size, soft_current_card(), RANGE_REGISTERED);
    return 0;
}

int soft_unregister(void *pointer) {
    Range forgotten;
    return soft_forget((uintptr_t)pointer, RANGE_REGISTERED, &forgotten) ? 0 : SOFT_INVALID_VALUE;
}

void soft_zero(void *pointer, uint64_t size) {
    uintptr_t first = ((uintptr_t)pointer + 4095) & ~(uintptr_t)4095;
    uintptr_t last = ((uintptr_t)pointer + size) & ~(uintptr_t)4095;
    Range found;
    /* Whole pages are given back rather than written: zeroing 2 GiB then takes no memory. */
    if (last > first && soft_find(pointer, &found) &&
        (found.kind == RANGE_DEVICE || found.kind == RANGE_MAPPED) &&
        madvise((void *)first, last - first, MADV_DONTNEED) == 0) {
        memset(pointer, 0, first - (uintptr_t)pointer);
        memset((void *)last, 0, (uintptr_t)pointer + size - last);
        return;
    }
    memset(pointer, 0, size);
}

void soft_fill(void *pointer, unsigned value, int width, uint64_t count) {
    if (value == 0) {
        soft_zero(pointer, count * (uint64_t)width);
    } else if (width == 1) {
        memset(pointer, (int)value, count);
    } else {
        for (uint64_t i = 0; i < count; i++) {
            memcpy((char *)pointer + i * (uint64_t)width, &value, (size_t)width);
        }
    }
}

/* Physical memory and its mapping into reserved addresses, as expandable segments use them.
 *
 * A handle is an amount taken from a card; mapping it makes reserved pages usable, unmapping drops
 * their contents. The memory is given back when the handle is released and no longer mapped.
 */
#include "softcards.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct {
    uint64_t size;
    int card;
    int holds; /* one for the handle, one for each mapping */
    bool is_released;
} Physical;

typedef struct {
    uintptr_t address;
    uint64_t handle;
} Mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Physical *physical;
static uint64_t handles;
static Mapping *mapping;
static int mappings;

int soft_physical_create(uint64_t *handle, int card, uint64_t size) {
    int code = soft_take(card, size);
    if (code != 0) {
        return code;
    }
    pthread_mutex_lock(&lock);
    physical = realloc(physical, (handles + 1) * sizeof *physical);
    physical[handles++] = (Physical){size, card, 1, false};
    *handle = handles;
    pthread_mutex_unlock(&lock);
    __atomic_fetch_add(&soft_share(card)->allocations, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Drops one hold of a handle; the caller holds the lock. */
static void drop(uint64_t handle) {
    Physical *memory = &physical[handle - 1];
    if (--memory->holds == 0) {
        soft_give(memory->card, memory->size);
    }
}

int soft_physical_release(uint64_t handle) {
    pthread_mutex_lock(&lock);
    bool is_known = handle > 0 && handle <= handles && !physical[handle - 1].is_released;
    if (is_known) {
        physical[handle - 1].is_released = true;
        drop(handle);
    }
    pthread_mutex_unlock(&lock);
    return is_known ? 0 : SOFT_INVALID_VALUE;
}

int soft_map(void *address, uint64_t size, uint64_t handle) {
    pthread_mutex_lock(&lock);
    bool is_known = handle > 0 && handle <= handles && physical[handle - 1].size == size;
    if (is_known) {
        mapping = realloc(mapping, (size_t)(mappings + 1) * sizeof *mapping);
        mapping[mappings++] = (Mapping){(uintptr_t)address, handle};
        physical[handle - 1].holds++;
        soft_remember((uintptr_t)address, size, physical[handle - 1].card, RANGE_MAPPED);
        mprotect(address, size, PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
    return is_known ? 0 : SOFT_INVALID_VALUE;
}

/* Unmaps what was mapped at one address; the size unmapped, 0 if nothing was. */
static uint64_t unmap_one(uintptr_t address) {
    Range range;
    for (int i = 0; i < mappings; i++) {
        if (mapping[i].address == address && soft_forget(address, RANGE_MAPPED, &range)) {
            drop(mapping[i].handle);
            mapping[i] = mapping[--mappings];
            madvise((void *)address, range.size, MADV_DONTNEED);
            mprotect((void *)address, range.size, PROT_NONE);
            return range.size;
        }
    }
    return 0;
}

int soft_unmap(void *address, uint64_t size) {
    uint64_t done = 0;
    pthread_mutex_lock(&lock);
    while (done < size) {
        uint64_t one = unmap_one((uintptr_t)address + done);
        if (one == 0) {
            break;
        }
        done += one;
    }
    pthread_mutex_unlock(&lock);
    return done == size ? 0 : SOFT_INVALID_VALUE;
}

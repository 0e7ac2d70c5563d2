/* Copies are real, and take the time of a bus: its bandwidth, halved for memory that is not pinned.
 *
 * The bytes move at the call, while the stream is busy for the time the bus would take. A call that
 * touches pageable memory returns when the copy is done (to the card: when it is read), as CUDA's.
 */
#include "softcards.h"

#include <string.h>

typedef enum { ON_HOST, PINNED, ON_CARD } Place;

static Place place_of(const void *pointer, int *card) {
    Range range;
    if (!soft_find(pointer, &range)) {
        return ON_HOST;
    }
    if (range.kind == RANGE_PINNED || range.kind == RANGE_REGISTERED) {
        return PINNED;
    }
    *card = range.card;
    return ON_CARD;
}

static uint64_t bus_time(int card, uint64_t size, Place to, Place from) {
    const Card *on = &soft_config()->card[card];
    const char *key = to == ON_CARD && from == ON_CARD ? "device_copy_mb_s" : "host_copy_mb_s";
    uint64_t mb_s = soft_number(on, key, 0);
    if (mb_s == 0) {
        return 0;
    }
    uint64_t halves = to == ON_HOST || from == ON_HOST ? 2 : 1;
    return size * 1000 * halves / mb_s;
}

static void count(int card, uint64_t size, Place to, Place from) {
    Share *share = soft_share(card);
    if (to == ON_CARD && from != ON_CARD) {
        __atomic_fetch_add(&share->copied_in_bytes, size, __ATOMIC_RELAXED);
    } else if (to != ON_CARD && from == ON_CARD) {
        __atomic_fetch_add(&share->copied_out_bytes, size, __ATOMIC_RELAXED);
    }
}

int soft_copy(void *to, const void *from, uint64_t size, Stream *stream, bool waits) {
    int card = stream->card;
    Place from_place = place_of(from, &card);
    Place to_place = place_of(to, &card);
    if (stream->capture != NULL) {
        soft_capture_copy(stream->capture, to, from, size);
        return 0;
    }
    if (size == 0) {
        return 0;
    }
    const uint64_t staged = 65536;
    bool blocks = waits || to_place == ON_HOST || (from_place == ON_HOST && size > staged);
    uint64_t end = soft_push(stream, bus_time(card, size, to_place, from_place));
    if (blocks && end == NEVER) {
        soft_hang();
    }
    memmove(to, from, size);
    count(card, size, to_place, from_place);
    if (waits) {
        __atomic_fetch_add(&soft_share(stream->card)->waits, 1, __ATOMIC_RELAXED);
    }
    if (blocks) {
        soft_wait_until(end);
        return soft_sticky(stream->card);
    }
    return 0;
}

int soft_set_memory(void *to, unsigned value, int width, uint64_t number, Stream *stream) {
    int card = stream->card;
    Place place = place_of(to, &card);
    if (stream->capture != NULL) {
        soft_capture_fill(stream->capture, to, value, width, number);
        return 0;
    }
    soft_push(stream, bus_time(card, number * (uint64_t)width, ON_CARD, place));
    soft_fill(to, value, width, number);
    return 0;
}

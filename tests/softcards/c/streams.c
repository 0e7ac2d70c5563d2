/* Time on a card: a stream is busy until a moment, an event stands at a moment.
 *
 * Work pushed to a stream begins when the stream is free and takes the time it is given, so the end
 * of everything is known when it is enqueued. Waiting is sleeping until then. The legacy default
 * stream waits for blocking streams and they for it, as CUDA defines.
 */
#include "softcards.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { STREAM_MAGIC = 0x53747265, EVENT_MAGIC = 0x45766e74, NON_BLOCKING = 1, NO_TIMING = 2 };

static Stream default_stream[SOFT_CARDS];
static Stream *created[SOFT_CARDS];

uint64_t soft_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

Stream *soft_stream(const void *handle) {
    /* 0, 1 and 2 name the current card's default stream: legacy twice, and per thread. */
    if ((uintptr_t)handle <= 2) {
        int card = soft_current_card();
        Stream *stream = &default_stream[card >= 0 ? card : 0];
        stream->magic = STREAM_MAGIC;
        stream->card = card >= 0 ? card : 0;
        return stream;
    }
    Stream *stream = (Stream *)handle;
    return stream->magic == STREAM_MAGIC ? stream : NULL;
}

Stream *soft_stream_create(int card, unsigned flags, int priority) {
    Stream *stream = calloc(1, sizeof *stream);
    *stream = (Stream){.magic = STREAM_MAGIC, .card = card, .flags = flags, .priority = priority};
    soft_lock();
    stream->next = created[card];
    created[card] = stream;
    soft_unlock();
    return stream;
}

int soft_stream_destroy(Stream *stream) {
    soft_lock();
    Stream **link = &created[stream->card];
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    bool is_found = *link == stream;
    if (is_found) {
        *link = stream->next;
        stream->magic = 0;
        free(stream);
    }
    soft_unlock();
    return is_found ? 0 : SOFT_INVALID_HANDLE;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* When a stream can begin its next work; the caller holds the lock. */
static uint64_t begin_time(const Stream *stream) {
    uint64_t begin = later(soft_now(), stream->until_ns);
    if (stream == &default_stream[stream->card]) {
        for (const Stream *s = created[stream->card]; s != NULL; s = s->next) {
            begin = (s->flags & NON_BLOCKING) != 0 ? begin : later(begin, s->until_ns);
        }
    } else if ((stream->flags & NON_BLOCKING) == 0) {
        begin = later(begin, default_stream[stream->card].until_ns);
    }
    return begin;
}

uint64_t soft_push(Stream *stream, uint64_t duration_ns) {
    soft_lock();
    uint64_t begin = begin_time(stream);
    stream->until_ns = begin > NEVER - duration_ns ? NEVER : begin + duration_ns;
    uint64_t until = stream->until_ns;
    soft_unlock();
    Share *share = soft_share(stream->card);
    if (until > share->busy_until_ns) {
        share->busy_until_ns = until;
    }
    return until;
}

uint64_t soft_card_until(int card) {
    soft_lock();
    uint64_t until = default_stream[card].until_ns;
    for (const Stream *s = created[card]; s != NULL; s = s->next) {
        until = later(until, s->until_ns);
    }
    soft_unlock();
    return until;
}

void soft_wait_until(uint64_t at_ns) {
    /* Sleep most of the time and spin the rest: a sleep overshoots by the timer slack. */
    const uint64_t spin_ns = 120000;
    for (uint64_t now = soft_now(); now < at_ns; now = soft_now()) {
        uint64_t left = at_ns - now;
        if (left > spin_ns) {
            uint64_t nap = left - spin_ns < 1000000000ull ? left - spin_ns : 1000000000ull;
            struct timespec pause = {(time_t)(nap / 1000000000ull), (long)(nap % 1000000000ull)};
            nanosleep(&pause, NULL);
        } else {
            sched_yield();
        }
    }
}

int soft_wait_stream(Stream *stream) {
    soft_lock();
    uint64_t until = stream->until_ns;
    soft_unlock();
    __atomic_fetch_add(&soft_share(stream->card)->waits, 1, __ATOMIC_RELAXED);
    soft_wait_until(until);
    return soft_sticky(stream->card);
}

int soft_wait_card(int card) {
    uint64_t until = soft_card_until(card);
    __atomic_fetch_add(&soft_share(card)->waits, 1, __ATOMIC_RELAXED);
    soft_wait_until(until);
    return soft_sticky(card);
}

Event *soft_event_create(int card, unsigned flags) {
    Event *event = calloc(1, sizeof *event);
    *event = (Event){.magic = EVENT_MAGIC, .card = card, .flags = flags};
    return event;
}

int soft_event_record(Event *event, Stream *stream) {
    if (event->magic != EVENT_MAGIC) {
        return SOFT_INVALID_HANDLE;
    }
    soft_lock();
    event->at_ns = begin_time(stream);
    event->is_recorded = true;
    event->capture = stream->capture;
    soft_unlock();
    return 0;
}

int soft_event_query(const Event *event) {
    return event->is_recorded && soft_now() < event->at_ns ? SOFT_NOT_READY : 0;
}

int soft_event_wait(const Event *event) {
    if (event->is_recorded) {
        __atomic_fetch_add(&soft_share(event->card)->waits, 1, __ATOMIC_RELAXED);
        soft_wait_until(event->at_ns);
    }
    return soft_sticky(event->card);
}

int soft_event_elapsed(float *elapsed_ms, const Event *start, const Event *end) {
    if (!start->is_recorded || !end->is_recorded || ((start->flags | end->flags) & NO_TIMING)) {
        return SOFT_INVALID_HANDLE;
    }
    if (soft_event_query(start) != 0 || soft_event_query(end) != 0) {
        return SOFT_NOT_READY;
    }
    *elapsed_ms = (float)((double)((int64_t)(end->at_ns - start->at_ns)) / 1e6);
    return 0;
}

int soft_stream_wait_event(Stream *stream, const Event *event) {
    soft_lock();
    if (event->is_recorded) {
        stream->until_ns = later(stream->until_ns, event->at_ns);
        if (event->capture != NULL && stream->capture == NULL) {
            stream->capture = event->capture;
            stream->is_origin = false;
        }
    }
    soft_unlock();
    return 0;
}

typedef struct {
    uint64_t at_ns;
    void (*function)(void *);
    void *argument;
} HostCall;

static void *run_host_call(void *argument) {
    HostCall call = *(HostCall *)argument;
    free(argument);
    soft_wait_until(call.at_ns);
    call.function(call.argument);
    return NULL;
}

int soft_host_function(Stream *stream, void (*function)(void *), void *argument) {
    HostCall *call = malloc(sizeof *call);
    pthread_t thread;
    *call = (HostCall){soft_push(stream, 0), function, argument};
    if (pthread_create(&thread, NULL, run_host_call, call) != 0) {
        free(call);
        return SOFT_OUT_OF_MEMORY;
    }
    pthread_detach(thread);
    return 0;
}

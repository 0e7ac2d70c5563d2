/* Faults that a test plants: a call that fails, a launch that breaks the context, a call that hangs.
 *
 * Calls are counted per process and per rule, from the moment the process first reads the rule.
 */
#include "softcards.h"

#include <string.h>
#include <time.h>

typedef struct {
    Rule rule;
    uint64_t calls;
    bool is_used;
} Counter;

typedef struct {
    int code;
    uint64_t at_ns;
    bool set_device;
} Break;

static Counter counter[128];
static Break broken[SOFT_CARDS];

static bool matches(const Rule *rule, const char *name, int card) {
    size_t length = strlen(rule->name);
    if (rule->card >= 0 && rule->card != card) {
        return false;
    }
    if (length > 0 && rule->name[length - 1] == '*') {
        return strncmp(rule->name, name, length - 1) == 0;
    }
    return strcmp(rule->name, name) == 0;
}

/* Counts a call of a rule (the caller holds the lock); true once the rule applies. */
static bool applies(const Rule *rule) {
    for (size_t i = 0; i < sizeof counter / sizeof *counter; i++) {
        if (!counter[i].is_used) {
            counter[i].is_used = true;
            counter[i].rule = *rule;
        }
        if (memcmp(&counter[i].rule, rule, sizeof *rule) == 0) {
            return ++counter[i].calls > rule->after;
        }
    }
    return true;
}

static const Rule *applying_rule(const char *name, int card) {
    const Config *config = soft_config();
    const Rule *found = NULL;
    for (int i = 0; i < config->rules && found == NULL; i++) {
        if (matches(&config->rule[i], name, card)) {
            soft_lock();
            found = applies(&config->rule[i]) ? &config->rule[i] : NULL;
            soft_unlock();
        }
    }
    return found;
}

void soft_hang(void) {
    for (;;) {
        struct timespec hour = {3600, 0};
        nanosleep(&hour, NULL);
    }
}

int soft_fault(const char *name, int card) {
    const Rule *rule = applying_rule(name, card);
    if (rule == NULL) {
        return 0;
    }
    if (rule->hang) {
        soft_hang();
    }
    if (rule->sticky && card >= 0) {
        soft_break(card, rule->code, 0, rule->set_device);
    }
    return rule->code;
}

int soft_launch_fault(int card, uint64_t *duration_ns, uint64_t *late_code) {
    const Rule *rule = applying_rule("launch", card);
    *late_code = 0;
    if (rule == NULL) {
        return 0;
    }
    if (rule->hang) {
        *duration_ns = NEVER;
        return 0;
    }
    if (rule->late) {
        *late_code = (uint64_t)rule->code | (rule->set_device ? 1ull << 32 : 0);
        return 0;
    }
    if (rule->sticky) {
        soft_break(card, rule->code, 0, rule->set_device);
    }
    return rule->code;
}

void soft_break(int card, int code, uint64_t at_ns, bool set_device) {
    soft_lock();
    if (broken[card].code == 0) {
        broken[card] = (Break){code, at_ns, set_device};
    }
    soft_unlock();
}

int soft_sticky(int card) {
    if (card < 0) {
        return 0;
    }
    const Config *config = soft_config();
    if (card < config->cards && config->card[card].is_lost) {
        soft_break(card, SOFT_LAUNCH_FAILURE, 0, false);
    }
    const Break *fault = &broken[card];
    return fault->code != 0 && soft_now() >= fault->at_ns ? fault->code : 0;
}

bool soft_sticky_reaches_set_device(int card) {
    return soft_sticky(card) != 0 && broken[card].set_device;
}

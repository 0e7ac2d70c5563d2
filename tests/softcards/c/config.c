/* Reads the configuration, a text file that a test replaces while programs run.
 *
 * Lines are "key = value"; "[card]" begins a card. Values may hold the escapes \xNN and \\, so that
 * a name need not be UTF-8. A version once read is never freed: readers keep no lock, and a test
 * changes the file a few thousand times at most.
 */
#include "softcards.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static const Config *current;
static struct stat current_stat;
static uint64_t current_generation;
static uint64_t looked_at_ns;

static const char *config_path(void) {
    static char path[4096];
    const char *folder = getenv("SOFT_CARDS_DIR");
    if (folder == NULL) {
        return NULL;
    }
    snprintf(path, sizeof path, "%s/pc.conf", folder);
    return path;
}

static char *unescaped(const char *text) {
    char *result = malloc(strlen(text) + 1);
    char *to = result;
    while (*text) {
        unsigned byte;
        if (text[0] == '\\' && text[1] == 'x' && sscanf(text + 2, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            text += 4;
        } else if (text[0] == '\\' && text[1] == '\\') {
            *to++ = '\\';
            text += 2;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
    return result;
}

static void read_rule(Config *config, char *text) {
    if (config->rules == (int)(sizeof config->rule / sizeof *config->rule)) {
        return;
    }
    Rule *rule = &config->rule[config->rules++];
    rule->card = -1;
    int column = 0;
    for (char *save = NULL, *word = strtok_r(text, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save), column++) {
        if (column == 0) {
            snprintf(rule->name, sizeof rule->name, "%s", word);
        } else if (strcmp(word, "hang") == 0) {
            rule->hang = true;
        } else if (strcmp(word, "sticky") == 0) {
            rule->sticky = true;
        } else if (strcmp(word, "late") == 0) {
            rule->late = true;
        } else if (strcmp(word, "set_device") == 0) {
            rule->set_device = true;
        } else if (strncmp(word, "after=", 6) == 0) {
            rule->after = strtoull(word + 6, NULL, 0);
        } else if (strncmp(word, "card=", 5) == 0) {
            rule->card = atoi(word + 5);
        } else {
            rule->code = atoi(word);
        }
    }
}

static void read_card_line(Card *card, const char *key, const char *value) {
    if (strcmp(key, "process") == 0) {
        if (card->others < (int)(sizeof card->other / sizeof *card->other)) {
            OtherProcess *other = &card->other[card->others++];
            unsigned long long bytes = 0;
            char kind = 'C';
            sscanf(value, "%u %llu %c", &other->pid, &bytes, &kind);
            other->bytes = bytes;
            other->graphics = kind == 'G';
        }
        return;
    }
    if (card->fields < (int)(sizeof card->field / sizeof *card->field)) {
        Field *field = &card->field[card->fields++];
        snprintf(field->key, sizeof field->key, "%s", key);
        field->value = unescaped(value);
    }
}

static void read_line(Config *config, char *line) {
    line[strcspn(line, "\r\n")] = '\0';
    line += strspn(line, " \t");
    if (strcmp(line, "[card]") == 0 && config->cards < SOFT_CARDS) {
        config->cards++;
        return;
    }
    char *equals = strchr(line, '=');
    if (*line == '#' || equals == NULL) {
        return;
    }
    char *value = equals + 1 + strspn(equals + 1, " \t");
    while (equals > line && (equals[-1] == ' ' || equals[-1] == '\t')) {
        equals--;
    }
    *equals = '\0';
    if (config->cards > 0) {
        read_card_line(&config->card[config->cards - 1], line, value);
    } else if (strcmp(line, "fault") == 0) {
        read_rule(config, value);
    } else if (strcmp(line, "driver_version") == 0) {
        snprintf(config->driver_version, sizeof config->driver_version, "%s", value);
    } else if (strcmp(line, "cuda_driver") == 0) {
        config->cuda_driver = atoi(value);
    }
}

static void read_config(const char *path) {
    static uint64_t serial;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    Config *config = calloc(1, sizeof *config);
    char line[1024];
    while (fgets(line, sizeof line, file) != NULL) {
        read_line(config, line);
    }
    fclose(file);
    for (int i = 0; i < config->cards; i++) {
        Card *card = &config->card[i];
        card->kernel_ns = soft_number(card, "kernel_ns", 0);
        card->capability = (int)soft_number(card, "capability", 0);
        card->is_lost = soft_number(card, "lost", 0) != 0;
    }
    config->serial = ++serial;
    __atomic_store_n(&current, config, __ATOMIC_RELEASE);
}

static bool differs(const struct stat *a, const struct stat *b) {
    return a->st_ino != b->st_ino || a->st_size != b->st_size ||
           a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

static void look(uint64_t generation) {
    pthread_mutex_lock(&reading);
    const char *path = config_path();
    struct stat now;
    if (path != NULL && stat(path, &now) == 0 &&
        (current == NULL || generation != current_generation || differs(&now, &current_stat))) {
        read_config(path);
        current_stat = now;
        __atomic_store_n(&current_generation, generation, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&looked_at_ns, soft_now(), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&reading);
}

/* A change that raises the count is seen at once, one by hand within a millisecond. The count also
 * tells of two changes within one tick of the file system's clock, which can look alike. */
const Config *soft_config(void) {
    static const Config nothing;
    const uint64_t look_every_ns = 1000000;
    const Usage *usage = soft_usage();
    uint64_t generation = usage ? __atomic_load_n(&usage->generation, __ATOMIC_ACQUIRE) : 0;
    const Config *config = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    if (config == NULL || generation != __atomic_load_n(&current_generation, __ATOMIC_ACQUIRE) ||
        soft_now() - __atomic_load_n(&looked_at_ns, __ATOMIC_ACQUIRE) >= look_every_ns) {
        look(generation);
        config = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    }
    return config != NULL ? config : &nothing;
}

const char *soft_text(const Card *card, const char *key, const char *otherwise) {
    for (int i = 0; i < card->fields; i++) {
        if (strcmp(card->field[i].key, key) == 0) {
            return card->field[i].value;
        }
    }
    return otherwise;
}

bool soft_has(const Card *card, const char *key) {
    return soft_text(card, key, NULL) != NULL;
}

bool soft_is_auto(const Card *card, const char *key) {
    const char *value = soft_text(card, key, "");
    return strcmp(value, "auto") == 0;
}

uint64_t soft_number(const Card *card, const char *key, uint64_t otherwise) {
    const char *value = soft_text(card, key, NULL);
    return value != NULL && *value != '\0' ? strtoull(value, NULL, 0) : otherwise;
}

/* Which process holds how much of which card: a table that all processes of the soft PC map.
 *
 * It is what makes NVML's "used", its process list and cudaMemGetInfo agree. A process that has
 * ended, in whatever way, holds nothing: its line is checked against /proc whenever it is summed.
 */
#include "softcards.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static int table_fd = -1;
static Usage *table;
static Process *own;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t in_process = PTHREAD_MUTEX_INITIALIZER;

static void open_table(void) {
    const char *folder = getenv("SOFT_CARDS_DIR");
    char path[4096];
    if (folder == NULL) {
        return;
    }
    snprintf(path, sizeof path, "%s/usage", folder);
    table_fd = open(path, O_RDWR | O_CLOEXEC);
    if (table_fd < 0) {
        return;
    }
    void *memory = mmap(NULL, sizeof(Usage), PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
    table = memory == MAP_FAILED ? NULL : memory;
}

static void after_fork(void) {
    /* The child is another process with a line, and a file lock, of its own. */
    pthread_mutex_init(&in_process, NULL);
    own = NULL;
    table = NULL;
    if (table_fd >= 0) {
        close(table_fd);
        table_fd = -1;
    }
    open_table();
}

static void open_once(void) {
    open_table();
    pthread_atfork(NULL, NULL, after_fork);
}

const Usage *soft_usage(void) {
    pthread_once(&once, open_once);
    return table;
}

/* Start time of a process in clock ticks, 0 if it has ended (a zombie has). */
static uint64_t start_time(int pid) {
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    char *field = strrchr(text, ')');
    if (field == NULL || field[2] == 'Z' || field[2] == 'X') {
        return 0;
    }
    for (int i = 2; i < 22 && field != NULL; i++) {
        field = strchr(field + 1, ' ');
    }
    return field != NULL ? strtoull(field, NULL, 10) : 0;
}

bool soft_alive(const Process *process) {
    return process->pid != 0 &&
           (process == own || start_time(process->pid) == process->started);
}

bool soft_usage_lock(void) {
    if (soft_usage() == NULL) {
        return false;
    }
    pthread_mutex_lock(&in_process);
    flock(table_fd, LOCK_EX);
    return true;
}

void soft_usage_unlock(void) {
    flock(table_fd, LOCK_UN);
    pthread_mutex_unlock(&in_process);
}

/* The line of this process. Lines of ended processes are used last: a test may still read them. */
static Process *claim(void) {
    Process *line = NULL;
    for (int i = 0; i < SOFT_PROCESSES && line == NULL; i++) {
        if (table->process[i].pid == 0) {
            line = &table->process[i];
        }
    }
    for (int i = 0; i < SOFT_PROCESSES && line == NULL; i++) {
        if (!soft_alive(&table->process[i])) {
            line = &table->process[i];
        }
    }
    if (line != NULL) {
        memset(line, 0, sizeof *line);
        line->started = start_time(getpid());
        line->pid = getpid();
    }
    return line;
}

Share *soft_share(int card) {
    static Share nowhere;
    if (own == NULL && soft_usage_lock()) {
        if (own == NULL) {
            own = claim();
        }
        soft_usage_unlock();
    }
    return own != NULL ? &own->card[card] : &nowhere;
}

/* The free bytes as CUDA tells them; the caller holds the lock of the table. */
static uint64_t free_bytes_locked(int index) {
    const Card *card = &soft_config()->card[index];
    uint64_t total = soft_number(card, "total_bytes", 0);
    uint64_t held = soft_number(card, "other_bytes", 0);
    for (int i = 0; i < card->others; i++) {
        held += card->other[i].bytes;
    }
    for (int i = 0; i < SOFT_PROCESSES; i++) {
        const Process *process = &table->process[i];
        if (process->pid != 0 && process->card[index].bytes != 0 && soft_alive(process)) {
            held += process->card[index].bytes;
        }
    }
    return held < total ? total - held : 0;
}

uint64_t soft_free_bytes(int card) {
    if (!soft_usage_lock()) {
        return 0;
    }
    uint64_t bytes = free_bytes_locked(card);
    soft_usage_unlock();
    return bytes;
}

int soft_take(int card, uint64_t bytes) {
    Share *share = soft_share(card);
    if (!soft_usage_lock()) {
        return SOFT_NO_DEVICE;
    }
    int code = bytes <= free_bytes_locked(card) ? 0 : SOFT_OUT_OF_MEMORY;
    if (code == 0) {
        share->bytes += bytes;
    }
    soft_usage_unlock();
    return code;
}

void soft_give(int card, uint64_t bytes) {
    Share *share = soft_share(card);
    if (soft_usage_lock()) {
        share->bytes -= bytes;
        soft_usage_unlock();
    }
}

bool soft_is_busy(int card) {
    const Usage *usage = soft_usage();
    /* NVML samples over up to a second; a third of it makes a finished run look idle soon. */
    const uint64_t sample_ns = 300000000;
    for (int i = 0; usage != NULL && i < SOFT_PROCESSES; i++) {
        const Process *process = &usage->process[i];
        uint64_t until = process->card[card].busy_until_ns;
        if (process->pid != 0 && until != 0 && (until == NEVER || until + sample_ns > soft_now()) &&
            soft_alive(process)) {
            return true;
        }
    }
    return false;
}

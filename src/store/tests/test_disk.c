#include "store/tests/test_disk.h"

#include "support/dvtest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"

#define SECTOR_BYTES 512u

enum kind {
    WRITE,
    TRUNCATE,
    SYNC,
    MARK,
};

struct entry {
    enum kind kind;
    size_t file;
    uint64_t at; /* or the size, or the number */
    char *bytes; /* on the heap */
    size_t n;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t n_calls;
    uint64_t n_syncs;
    uint64_t fail_from;
    uint64_t fail_until; /* not with it */
    int errnum;
    bool has_failed;
    char failing[200];    /* "": no file in particular */
    char unreadable[200]; /* "": none */
    uint64_t unreadable_from;
    uint64_t n_unreadable;
    bool is_held;
    bool is_waiting;
    bool is_recording;
    char paths[DISK_N_FILES][200];
    struct dv_buf begin[DISK_N_FILES];
    DV_VEC(struct entry) entries;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- orders ---- */

void disk_reset(void)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.n_calls = disk.n_syncs = disk.fail_from = disk.fail_until = 0;
    disk.failing[0] = disk.unreadable[0] = '\0';
    disk.has_failed = disk.is_held = disk.is_waiting = disk.is_recording = false;
    for (size_t i = 0; i < disk.entries.n; i++)
        free(disk.entries.v[i].bytes);
    dv_vec_fini(&disk.entries);
    for (size_t i = 0; i < DISK_N_FILES; i++) {
        disk.begin[i].max = 256u << 20;
        dv_buf_fini(&disk.begin[i]);
    }
    (void)pthread_cond_broadcast(&disk.changed);
    (void)pthread_mutex_unlock(&disk.lock);
}

static uint64_t locked(const uint64_t *count)
{
    uint64_t value;

    (void)pthread_mutex_lock(&disk.lock);
    value = *count;
    (void)pthread_mutex_unlock(&disk.lock);
    return value;
}

uint64_t disk_n_calls(void)
{
    return locked(&disk.n_calls);
}

uint64_t disk_n_syncs(void)
{
    return locked(&disk.n_syncs);
}

void disk_fail(uint64_t nth, uint64_t n_failing, int errnum)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.fail_from = disk.n_calls + nth;
    disk.fail_until = disk.fail_from + n_failing;
    disk.errnum = errnum;
    disk.has_failed = false;
    (void)pthread_mutex_unlock(&disk.lock);
}

bool disk_has_failed(void)
{
    bool has_failed;

    (void)pthread_mutex_lock(&disk.lock);
    has_failed = disk.has_failed;
    (void)pthread_mutex_unlock(&disk.lock);
    return has_failed;
}

void disk_fail_file(const char *path, int errnum)
{
    (void)pthread_mutex_lock(&disk.lock);
    (void)snprintf(disk.failing, sizeof(disk.failing), "%s", path);
    disk.errnum = errnum;
    (void)pthread_mutex_unlock(&disk.lock);
}

void disk_fail_reads(const char *path, uint64_t at, uint64_t n_failing, int errnum)
{
    (void)pthread_mutex_lock(&disk.lock);
    (void)snprintf(disk.unreadable, sizeof(disk.unreadable), "%s", path);
    disk.unreadable_from = at;
    disk.n_unreadable = n_failing;
    disk.errnum = errnum;
    disk.has_failed = false;
    (void)pthread_mutex_unlock(&disk.lock);
}

static void set_held(bool is_held)
{
    (void)pthread_mutex_lock(&disk.lock);
    disk.is_held = is_held;
    disk.is_waiting = false;
    (void)pthread_cond_broadcast(&disk.changed);
    (void)pthread_mutex_unlock(&disk.lock);
}

void disk_hold(void)
{
    set_held(true);
}

void disk_release(void)
{
    set_held(false);
}

void disk_wait_held(void)
{
    (void)pthread_mutex_lock(&disk.lock);
    while (!disk.is_waiting)
        (void)pthread_cond_wait(&disk.changed, &disk.lock);
    (void)pthread_mutex_unlock(&disk.lock);
}

/* ---- the record ---- */

static void read_file(const char *path, struct dv_buf *buf)
{
    FILE *file = fopen(path, "r");
    char bytes[4096];
    size_t n;

    dv_buf_init(buf, 256u << 20);
    if (!file)
        return; /* no log yet */
    while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
        dv_buf_add(buf, (dv_str){bytes, n});
    (void)fclose(file);
}

void disk_record(const char *path)
{
    (void)pthread_mutex_lock(&disk.lock);
    (void)snprintf(disk.paths[0], sizeof(disk.paths[0]), "%s", path);
    (void)snprintf(disk.paths[1], sizeof(disk.paths[1]), "%s-wal", path);
    for (size_t i = 0; i < DISK_N_FILES; i++)
        read_file(disk.paths[i], &disk.begin[i]);
    disk.is_recording = true;
    (void)pthread_mutex_unlock(&disk.lock);
}

static void path_of(int fd, char path[200])
{
    char link[32];
    ssize_t n;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, 199);
    path[n < 0 ? 0 : n] = '\0';
}

/* Which of the recorded files it is; DISK_N_FILES: none. */
static size_t file_of(int fd)
{
    char path[200];

    path_of(fd, path);
    for (size_t i = 0; i < DISK_N_FILES; i++)
        if (strcmp(path, disk.paths[i]) == 0)
            return i;
    return DISK_N_FILES;
}

/* Under the lock. */
static void record(enum kind kind, size_t file, uint64_t at, const void *bytes, size_t n)
{
    struct entry *entry;

    if (!disk.is_recording || file == DISK_N_FILES)
        return;
    entry = dv_vec_add(&disk.entries);
    *entry = (struct entry){.kind = kind, .file = file, .at = at, .n = n};
    if (n > 0) {
        entry->bytes = malloc(n);
        assert_non_null(entry->bytes);
        memcpy(entry->bytes, bytes, n);
    }
}

void disk_mark(uint64_t number)
{
    (void)pthread_mutex_lock(&disk.lock);
    record(MARK, 0, number, NULL, 0);
    (void)pthread_mutex_unlock(&disk.lock);
}

uint64_t disk_n_recorded(void)
{
    uint64_t n;

    (void)pthread_mutex_lock(&disk.lock);
    n = disk.entries.n;
    (void)pthread_mutex_unlock(&disk.lock);
    return n;
}

static void put_bytes(struct dv_buf *image, uint64_t at, const char *bytes, size_t n)
{
    if (image->n < at + n)
        memset(dv_buf_extend(image, at + n - image->n), 0, at + n - image->n);
    memcpy(image->p + at, bytes, n);
}

static void put_sectors(struct dv_buf *image, const struct entry *entry, unsigned *seed)
{
    size_t n;

    for (size_t done = 0; done < entry->n; done += n) {
        n = SECTOR_BYTES - (entry->at + done) % SECTOR_BYTES;
        n = n < entry->n - done ? n : entry->n - done;
        if (rand_r(seed) % 2)
            put_bytes(image, entry->at + done, entry->bytes + done, n);
    }
}

static void apply(struct dv_buf *image, const struct entry *entry, bool is_synced, unsigned *seed)
{
    if (entry->kind == WRITE && is_synced)
        put_bytes(image, entry->at, entry->bytes, entry->n);
    else if (entry->kind == WRITE)
        put_sectors(image, entry, seed);
    else if (entry->kind == TRUNCATE && (is_synced || rand_r(seed) % 2) && entry->at < image->n)
        image->n = entry->at;
}

uint64_t disk_make_image(const char *path, uint64_t n, unsigned seed)
{
    uint64_t n_synced[DISK_N_FILES] = {0};
    uint64_t mark = 0;

    for (uint64_t i = 0; i < n; i++) {
        if (disk.entries.v[i].kind == SYNC)
            n_synced[disk.entries.v[i].file] = i;
        else if (disk.entries.v[i].kind == MARK)
            mark = disk.entries.v[i].at;
    }
    for (size_t file = 0; file < DISK_N_FILES; file++) {
        struct dv_buf image;
        char name[250];
        FILE *out;

        dv_buf_init(&image, 256u << 20);
        dv_buf_add(&image, dv_buf_str(&disk.begin[file]));
        for (uint64_t i = 0; i < n; i++)
            if (disk.entries.v[i].file == file)
                apply(&image, &disk.entries.v[i], i < n_synced[file], &seed);
        (void)snprintf(name, sizeof(name), "%s%s", path, file ? "-wal" : "");
        out = fopen(name, "w");
        assert_non_null(out);
        assert_int_equal(fwrite(dv_buf_c(&image), 1, image.n, out), image.n);
        assert_int_equal(fclose(out), 0);
        dv_buf_fini(&image);
    }
    return mark;
}

/* ---- between SQLite and the kernel ---- */

/* Counts the call; true when it is to fail, with errno set. */
static bool is_to_fail(int fd)
{
    char path[200] = "";

    disk.n_calls++;
    if (disk.failing[0])
        path_of(fd, path);
    if (!(disk.failing[0] && strcmp(path, disk.failing) == 0) &&
        (disk.n_calls < disk.fail_from || disk.n_calls >= disk.fail_until))
        return false;
    disk.has_failed = true;
    errno = disk.errnum;
    return true;
}

static bool passes(enum kind kind, int fd, uint64_t at, const void *bytes, size_t n)
{
    bool is_ok;

    (void)pthread_mutex_lock(&disk.lock);
    if (kind == SYNC) {
        disk.n_syncs++;
        while (disk.is_held) {
            disk.is_waiting = true;
            (void)pthread_cond_broadcast(&disk.changed);
            (void)pthread_cond_wait(&disk.changed, &disk.lock);
        }
    }
    is_ok = !is_to_fail(fd);
    if (is_ok && disk.is_recording)
        record(kind, file_of(fd), at, bytes, n);
    (void)pthread_mutex_unlock(&disk.lock);
    return is_ok;
}

/* Libraries must see these in place of the C library's. */
#pragma GCC visibility push(default)

ssize_t pread64(int fd, void *bytes, size_t n, off64_t at)
{
    char path[200] = "";
    bool is_ok = true;

    (void)pthread_mutex_lock(&disk.lock);
    if (disk.unreadable[0] && disk.n_unreadable > 0 && (uint64_t)at + n > disk.unreadable_from) {
        path_of(fd, path);
        is_ok = strcmp(path, disk.unreadable) != 0;
        disk.n_unreadable -= !is_ok;
        disk.has_failed |= !is_ok;
        errno = disk.errnum;
    }
    (void)pthread_mutex_unlock(&disk.lock);
    return is_ok ? syscall(SYS_pread64, fd, bytes, n, at) : -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
    return passes(WRITE, fd, (uint64_t)at, bytes, n) ? syscall(SYS_pwrite64, fd, bytes, n, at) : -1;
}

int ftruncate64(int fd, off64_t n)
{
    return passes(TRUNCATE, fd, (uint64_t)n, NULL, 0) ? (int)syscall(SYS_ftruncate, fd, n) : -1;
}

int fdatasync(int fd)
{
    return passes(SYNC, fd, 0, NULL, 0) ? (int)syscall(SYS_fdatasync, fd) : -1;
}

int fsync(int fd)
{
    return passes(SYNC, fd, 0, NULL, 0) ? (int)syscall(SYS_fsync, fd) : -1;
}

int rename(const char *from, const char *to)
{
    bool is_ok;

    (void)pthread_mutex_lock(&disk.lock);
    is_ok = !is_to_fail(-1);
    (void)pthread_mutex_unlock(&disk.lock);
    return is_ok ? (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0) : -1;
}

#pragma GCC visibility pop

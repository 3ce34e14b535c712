#include "store/wal.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "store/db.h"

#define MAGIC 0x377f0682u /* the last bit says that checksums are over big-endian words */
#define HEADER_BYTES 32u
#define FRAME_HEADER_BYTES 24u
#define FRAME_BYTES (FRAME_HEADER_BYTES + DV_STORE_PAGE_BYTES)
/* A log is copied into the database every 4 MiB, and no write is taken when that has failed for 128
 * MiB. A larger log was not written by us, and the search stops here. */
#define N_FRAMES_MAX 131072u
/* How many generations of the log a leftover frame may be older than the log. */
#define N_GENERATIONS_MAX (1u << 20)

/* ---- checksums ---- */

struct sum {
    uint32_t a;
    uint32_t b;
};

struct log {
    int fd;
    bool is_big;       /* checksums are over big-endian words */
    struct sum header; /* the checksum that the first frame continues */
    struct dv_wal_salts salts;
};

static uint32_t be32(const unsigned char *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return be32toh(value);
}

static uint32_t word_at(const struct log *log, const unsigned char *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return log->is_big ? be32toh(value) : le32toh(value);
}

/* Adds bytes to the checksum; `n` is a multiple of eight. */
static struct sum add_up(const struct log *log, struct sum sum, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        sum.a += word_at(log, p + i) + sum.b;
        sum.b += word_at(log, p + i + 4) + sum.a;
    }
    return sum;
}

static bool is_same(struct sum a, struct sum b)
{
    return a.a == b.a && a.b == b.b;
}

/* ---- reading ---- */

static bool read_at(int fd, void *bytes, size_t n, off_t at)
{
    size_t got = 0;

    while (got < n) {
        ssize_t now = pread(fd, (char *)bytes + got, n - got, at + (off_t)got);

        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            return false;
        got += (size_t)now;
    }
    return true;
}

static struct dv_wal_salts salts_at(const unsigned char *p)
{
    return (struct dv_wal_salts){be32(p), be32(p + 4)};
}

static bool are_same(struct dv_wal_salts a, struct dv_wal_salts b)
{
    return a.count == b.count && a.random == b.random;
}

static bool read_header(struct log *log)
{
    unsigned char bytes[HEADER_BYTES];
    struct sum sum;

    if (!read_at(log->fd, bytes, sizeof(bytes), 0) || (be32(bytes) & ~1u) != MAGIC)
        return false;
    log->is_big = be32(bytes) & 1u;
    log->salts = salts_at(bytes + 16);
    log->header = (struct sum){be32(bytes + 24), be32(bytes + 28)};
    sum = add_up(log, (struct sum){0}, bytes, 24);
    return is_same(sum, log->header) && be32(bytes + 8) == DV_STORE_PAGE_BYTES;
}

bool dv_wal_read_salts(int fd, struct dv_wal_salts *salts)
{
    struct log log = {.fd = fd};

    if (!read_header(&log))
        return false;
    *salts = log.salts;
    return true;
}

struct frame {
    struct dv_wal_salts salts;
    struct sum sum; /* as it is stored in the frame */
    bool is_commit;
    bool is_zero;
    bool goes_on; /* it continues the sum that it was read with */
};

static bool read_frame(const struct log *log, uint64_t i, struct sum before, struct frame *frame)
{
    unsigned char bytes[FRAME_BYTES];
    static const unsigned char zeros[FRAME_HEADER_BYTES];
    struct sum sum;

    if (!read_at(log->fd, bytes, sizeof(bytes), (off_t)(HEADER_BYTES + i * FRAME_BYTES)))
        return false;
    sum = add_up(log, before, bytes, 8);
    sum = add_up(log, sum, bytes + FRAME_HEADER_BYTES, DV_STORE_PAGE_BYTES);
    *frame = (struct frame){
        .salts = salts_at(bytes + 8),
        .sum = {be32(bytes + 16), be32(bytes + 20)},
        .is_commit = be32(bytes + 4) != 0,
        .is_zero = memcmp(bytes, zeros, sizeof(zeros)) == 0,
    };
    frame->goes_on = be32(bytes) != 0 && is_same(sum, frame->sum);
    return true;
}

/* Returns the first frame at or after `i` that has data: a file may have holes. */
static uint64_t skip_hole(const struct log *log, uint64_t i)
{
    off_t at = lseek(log->fd, (off_t)(HEADER_BYTES + i * FRAME_BYTES), SEEK_DATA);

    if (at < 0)
        return errno == ENXIO ? UINT64_MAX : i + 1;
    return dv_u64_max(i + 1, ((uint64_t)at - HEADER_BYTES) / FRAME_BYTES);
}

/* ---- what there is ---- */

/* Walks to the first frame that SQLite would not take. */
static uint64_t walk_good(const struct log *log, struct dv_wal_report *report, struct sum *sum)
{
    uint64_t i = 0;
    struct frame frame;

    *sum = log->header;
    for (; i < N_FRAMES_MAX && read_frame(log, i, *sum, &frame); i++) {
        if (!frame.goes_on || !are_same(frame.salts, log->salts)) {
            report->has_tail = are_same(frame.salts, log->salts);
            break;
        }
        *sum = frame.sum;
        if (frame.is_commit)
            report->n_frames = i + 1;
    }
    return i;
}

/* Whether it is a frame of an earlier log, which SQLite writes over from the beginning. */
static bool is_leftover(const struct log *log, struct dv_wal_salts salts)
{
    uint32_t behind = log->salts.count - salts.count;

    return behind > 0 && behind < N_GENERATIONS_MAX && salts.random != log->salts.random;
}

/* Counts the commits after the damage. Without a good header, any frames of one log in a row
 * count. */
static void walk_behind(const struct log *log, uint64_t i, struct dv_wal_report *report)
{
    struct frame before = {0};
    struct frame frame;
    uint64_t n_read = 0;

    while (n_read++ < N_FRAMES_MAX && read_frame(log, i, before.sum, &frame)) {
        bool is_ours = report->has_header ? are_same(frame.salts, log->salts)
                                          : are_same(frame.salts, before.salts);

        if (frame.is_zero) {
            uint64_t next = skip_hole(log, i);

            if (next == UINT64_MAX)
                return;
            before = (struct frame){0};
            i = next;
            continue;
        }
        if (report->has_header && is_leftover(log, frame.salts) && is_leftover(log, before.salts) &&
            frame.goes_on)
            return; /* all frames after it are leftovers too */
        if (is_ours && frame.goes_on && frame.is_commit)
            report->n_behind++;
        before = frame;
        i++;
    }
}

bool dv_wal_inspect(const char *path, struct dv_wal_report *report, struct dv_err *err)
{
    struct log log = {.fd = -1};
    struct stat about;
    struct sum sum;
    uint64_t i = 0;

    *report = (struct dv_wal_report){0};
    log.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (log.fd < 0 && errno == ENOENT)
        return true;
    if (log.fd < 0)
        return dv_fail_errno(err, errno, "open %s", path);
    if (fstat(log.fd, &about) != 0 || !S_ISREG(about.st_mode)) {
        dv_close_fd(&log.fd);
        return dv_fail(err, DV_FAILED_PRECONDITION, "%s: not a regular file; move it away", path);
    }
    report->is_there = about.st_size > 0;
    report->has_header = read_header(&log);
    report->salts = log.salts;
    if (report->has_header)
        i = walk_good(&log, report, &sum);
    walk_behind(&log, i, report);
    dv_close_fd(&log.fd);
    return true;
}

/* ---- what to make of it ---- */

static enum dv_wal_verdict judge_alone(const struct dv_wal_report *report, bool is_marked)
{
    /* Each commit was synced before the next one began. So nothing of a commit that another one
     * follows can be missing, unless it was damaged afterwards. */
    if (report->n_behind > 1)
        return DV_WAL_LOST;
    /* The last commit may have been under way when the machine stopped, and so may a damaged end.
     * With a mark it is known that nobody was told that it succeeded. */
    return report->n_behind == 1 || (report->has_tail && !is_marked) ? DV_WAL_CUT : DV_WAL_GOOD;
}

static bool is_before(struct dv_wal_salts a, struct dv_wal_salts b)
{
    uint32_t ahead = b.count - a.count;

    return ahead > 0 && ahead < N_GENERATIONS_MAX;
}

struct dv_wal_base dv_wal_base_of(const char *path)
{
    struct stat about;

    if (stat(path, &about) != 0)
        return (struct dv_wal_base){0};
    return (struct dv_wal_base){
        .file = (uint64_t)about.st_ino,
        .size_bytes = (uint64_t)about.st_size,
        .changed_ns =
            (uint64_t)about.st_mtim.tv_sec * 1000000000u + (uint64_t)about.st_mtim.tv_nsec,
    };
}

enum dv_wal_verdict dv_wal_judge(const struct dv_wal_report *report, const struct dv_wal_mark *mark,
                                 const struct dv_wal_base *base)
{
    bool is_base = mark && memcmp(base, &mark->base, sizeof(*base)) == 0;

    if (!mark || mark->n_frames == 0)
        return judge_alone(report, mark != NULL);
    if (!report->has_header) { /* SQLite takes nothing of a log without a header */
        if (!mark->is_home)
            return report->is_there ? DV_WAL_WRONG : DV_WAL_LOST;
        return report->n_behind > 0 ? DV_WAL_WRONG : DV_WAL_GOOD;
    }
    if (are_same(report->salts, mark->salts)) {
        if (report->n_frames >= mark->n_frames || (mark->is_home && !is_base))
            return judge_alone(report, true);
        return mark->is_home ? DV_WAL_WRONG : DV_WAL_LOST;
    }
    /* SQLite begins a log with the next number, or with any number when there was none. */
    if (mark->is_home || is_before(mark->salts, report->salts))
        return judge_alone(report, true);
    if (is_base && is_before(report->salts, mark->salts))
        return DV_WAL_WRONG;
    return DV_WAL_LOST;
}

/* ---- the mark ---- */

struct mark_file {
    char magic[8];
    uint32_t salt_count;
    uint32_t salt_random;
    uint64_t n_frames;
    uint64_t is_home;
    struct dv_wal_base base;
    uint64_t check;
};

static const char mark_magic[8] = "davitmk1";

static uint64_t check_of(const struct mark_file *file)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    const unsigned char *p = (const unsigned char *)file;

    for (size_t i = 0; i < offsetof(struct mark_file, check); i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int dv_wal_mark_open(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

void dv_wal_mark_write(int fd, const struct dv_wal_mark *mark)
{
    struct mark_file file = {
        .salt_count = mark->salts.count,
        .salt_random = mark->salts.random,
        .n_frames = mark->n_frames,
        .is_home = mark->is_home,
        .base = mark->base,
    };

    if (fd < 0)
        return;
    memcpy(file.magic, mark_magic, sizeof(file.magic));
    file.check = check_of(&file);
    /* A mark that could not be written stays older and knows less. That is all that a full disk
     * costs here, so the error is passed over. */
    if (pwrite(fd, &file, sizeof(file), 0) != (ssize_t)sizeof(file))
        return;
}

bool dv_wal_mark_read(const char *path, struct dv_wal_mark *mark)
{
    DV_CLEANUP(dv_close_fd)
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct mark_file file;
    struct stat about;

    if (fd < 0 || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) ||
        !read_at(fd, &file, sizeof(file), 0) ||
        memcmp(file.magic, mark_magic, sizeof(file.magic)) != 0 || file.check != check_of(&file))
        return false;
    *mark = (struct dv_wal_mark){
        .salts = {file.salt_count, file.salt_random},
        .n_frames = file.n_frames,
        .is_home = file.is_home != 0,
        .base = file.base,
    };
    return true;
}

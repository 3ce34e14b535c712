#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#define CHUNK_BYTES 65536u

void dv_close_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing to do about a failure here; writers fsync first */
}

bool dv_file_read(dv_str path, size_t max_bytes, struct dv_arena *arena, dv_str *text,
                  struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd)
    int fd = open(dv_str_to_c(path, arena), O_RDONLY | O_CLOEXEC);
    struct dv_buf buf;
    ssize_t got;

    if (fd < 0)
        return dv_fail_errno(err, errno, "open %.*s", DV_FMT(path));
    dv_buf_init(&buf, max_bytes);
    do {
        char chunk[CHUNK_BYTES];

        got = read(fd, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            (void)dv_fail_errno(err, errno, "read %.*s", DV_FMT(path));
            break;
        }
        dv_buf_add(&buf, (dv_str){chunk, (size_t)got});
    } while (got != 0 && !buf.is_over);
    if (buf.is_over)
        (void)dv_fail(err, DV_RESOURCE_EXHAUSTED, "read %.*s: larger than the limit of %zu bytes",
                      DV_FMT(path), max_bytes);
    else if (got == 0)
        *text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return got == 0 && !buf.is_over;
}

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/visible.h"

/* What is kept of a long message. A client may send texts of megabytes, of which nobody needs all
 * back. */
#define WHOLE_BYTES_MAX 65536u

static const char *const code_names[] = {
    [DV_OK] = "OK",
    [DV_CANCELLED] = "CANCELLED",
    [DV_UNKNOWN] = "UNKNOWN",
    [DV_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [DV_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [DV_NOT_FOUND] = "NOT_FOUND",
    [DV_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [DV_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [DV_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [DV_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [DV_ABORTED] = "ABORTED",
    [DV_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [DV_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [DV_INTERNAL] = "INTERNAL",
    [DV_UNAVAILABLE] = "UNAVAILABLE",
    [DV_DATA_LOSS] = "DATA_LOSS",
    [DV_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

static const char *const go_names[] = {
    [DV_OK] = "OK",
    [DV_CANCELLED] = "Canceled",
    [DV_UNKNOWN] = "Unknown",
    [DV_INVALID_ARGUMENT] = "InvalidArgument",
    [DV_DEADLINE_EXCEEDED] = "DeadlineExceeded",
    [DV_NOT_FOUND] = "NotFound",
    [DV_ALREADY_EXISTS] = "AlreadyExists",
    [DV_PERMISSION_DENIED] = "PermissionDenied",
    [DV_RESOURCE_EXHAUSTED] = "ResourceExhausted",
    [DV_FAILED_PRECONDITION] = "FailedPrecondition",
    [DV_ABORTED] = "Aborted",
    [DV_OUT_OF_RANGE] = "OutOfRange",
    [DV_UNIMPLEMENTED] = "Unimplemented",
    [DV_INTERNAL] = "Internal",
    [DV_UNAVAILABLE] = "Unavailable",
    [DV_DATA_LOSS] = "DataLoss",
    [DV_UNAUTHENTICATED] = "Unauthenticated",
};

static const struct {
    int errnum;
    enum dv_code code;
} errno_codes[] = {
    {ENOENT,       DV_NOT_FOUND          },
    {ENOTDIR,      DV_NOT_FOUND          },
    {EEXIST,       DV_ALREADY_EXISTS     },
    {EADDRINUSE,   DV_ALREADY_EXISTS     },
    {EACCES,       DV_PERMISSION_DENIED  },
    {EPERM,        DV_PERMISSION_DENIED  },
    {EROFS,        DV_PERMISSION_DENIED  },
    {EINVAL,       DV_INVALID_ARGUMENT   },
    {ENAMETOOLONG, DV_INVALID_ARGUMENT   },
    {ENOTSOCK,     DV_FAILED_PRECONDITION},
    {EISDIR,       DV_FAILED_PRECONDITION},
    {ENOTEMPTY,    DV_FAILED_PRECONDITION},
    {ENOSPC,       DV_RESOURCE_EXHAUSTED },
    {EDQUOT,       DV_RESOURCE_EXHAUSTED },
    {EMFILE,       DV_RESOURCE_EXHAUSTED },
    {ENFILE,       DV_RESOURCE_EXHAUSTED },
    {ENOMEM,       DV_RESOURCE_EXHAUSTED },
    {ETIMEDOUT,    DV_DEADLINE_EXCEEDED  },
    {ECANCELED,    DV_CANCELLED          },
    {ECONNREFUSED, DV_UNAVAILABLE        },
    {ECONNRESET,   DV_UNAVAILABLE        },
    {EPIPE,        DV_UNAVAILABLE        },
    {ENOTCONN,     DV_UNAVAILABLE        },
    {EAGAIN,       DV_UNAVAILABLE        },
    {ENOSYS,       DV_UNIMPLEMENTED      },
    {ENOTSUP,      DV_UNIMPLEMENTED      },
    {EIO,          DV_DATA_LOSS          },
};

/* Cuts a text that needed `wanted` bytes and did not fit, between characters, and marks the cut. */
static void mark_cut(char *msg, size_t size, int wanted)
{
    static const char mark[] = "...";
    size_t end = size - sizeof(mark);

    if (wanted < 0 || (size_t)wanted < size)
        return;
    while (end > 0 && ((unsigned char)msg[end] & 0xc0) == 0x80)
        end--;
    memcpy(msg + end, mark, sizeof(mark));
}

bool dv_vfail(struct dv_err *err, enum dv_code code, const char *fmt, va_list args)
{
    char msg[DV_ERR_MSG_BYTES]; /* the arguments may point into err->msg */

    mark_cut(msg, sizeof(msg), vsnprintf(msg, sizeof(msg), fmt, args));
    dv_visible_in_place(msg, sizeof(msg)); /* what it quotes may come from anybody */
    err->code = code;
    err->whole = NULL;
    memcpy(err->msg, msg, sizeof(msg));
    return false;
}

bool dv_fail_in(struct dv_err *err, struct dv_arena *arena, enum dv_code code, const char *fmt, ...)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    va_list args;

    dv_buf_init(&buf, WHOLE_BYTES_MAX);
    va_start(args, fmt);
    dv_buf_vprintf(&buf, fmt, args);
    va_end(args);
    (void)dv_fail(err, code, "%s", dv_buf_c(&buf));
    if (buf.n >= sizeof(err->msg)) {
        char *whole = dv_arena_alloc(arena, buf.n + 1, 1);

        memcpy(whole, dv_buf_c(&buf), buf.n);
        dv_visible_in_place(whole, buf.n + 1);
        err->whole = whole;
    }
    return false;
}

const char *dv_err_text(const struct dv_err *err)
{
    return err->whole ? err->whole : err->msg;
}

bool dv_fail(struct dv_err *err, enum dv_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)dv_vfail(err, code, fmt, args);
    va_end(args);
    return false;
}

bool dv_fail_errno(struct dv_err *err, int errnum, const char *fmt, ...)
{
    char what[DV_ERR_MSG_BYTES];
    char text[64];
    va_list args;

    va_start(args, fmt);
    mark_cut(what, sizeof(what), vsnprintf(what, sizeof(what), fmt, args));
    va_end(args);
    return dv_fail(err, dv_code_from_errno(errnum), "%s: %s", what,
                   strerror_r(errnum, text, sizeof(text)));
}

bool dv_wrap(struct dv_err *err, const char *fmt, ...)
{
    char what[DV_ERR_MSG_BYTES];
    va_list args;

    va_start(args, fmt);
    mark_cut(what, sizeof(what), vsnprintf(what, sizeof(what), fmt, args));
    va_end(args);
    return dv_fail(err, err->code, "%s: %s", what, err->msg);
}

void dv_err_copy(const struct dv_err *err, char *msg, size_t size)
{
    mark_cut(msg, size, snprintf(msg, size, "%s", err->msg));
}

const char *dv_code_name(enum dv_code code)
{
    return (size_t)code < DV_COUNT(code_names) ? code_names[code] : "CODE";
}

const char *dv_code_go_name(enum dv_code code)
{
    return (size_t)code < DV_COUNT(go_names) ? go_names[code] : "Unknown";
}

void dv_err_print_rpc(const struct dv_err *err, struct dv_buf *buf)
{
    dv_buf_printf(buf, "rpc error: code = %s desc = %s", dv_code_go_name(err->code), err->msg);
}

enum dv_code dv_code_from_errno(int errnum)
{
    for (size_t i = 0; i < DV_COUNT(errno_codes); i++)
        if (errno_codes[i].errnum == errnum)
            return errno_codes[i].code;
    return DV_INTERNAL;
}

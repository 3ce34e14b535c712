/* err.h - the one way in which things fail: a code to branch on and a message to read.
 *
 * What can fail returns false or NULL and sets *err, and only then. The caller owns the struct;
 * nothing in it needs freeing. */
#ifndef DV_BASE_ERR_H
#define DV_BASE_ERR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"

struct dv_arena;
struct dv_buf;

/* Numbered as the gRPC statuses, so that a code crosses the wire unchanged. */
enum dv_code {
    DV_OK = 0,
    DV_CANCELLED = 1,
    DV_UNKNOWN = 2,
    DV_INVALID_ARGUMENT = 3,
    DV_DEADLINE_EXCEEDED = 4,
    DV_NOT_FOUND = 5,
    DV_ALREADY_EXISTS = 6,
    DV_PERMISSION_DENIED = 7,
    DV_RESOURCE_EXHAUSTED = 8,
    DV_FAILED_PRECONDITION = 9,
    DV_ABORTED = 10,
    DV_OUT_OF_RANGE = 11,
    DV_UNIMPLEMENTED = 12,
    DV_INTERNAL = 13,
    DV_UNAVAILABLE = 14,
    DV_DATA_LOSS = 15,
    DV_UNAUTHENTICATED = 16,
};

/* Long enough for a few wrapped steps around what another program said (a runtime that cannot pull
 * an image tells of it in 300 bytes), short enough for a stack frame and a response header. */
#define DV_ERR_MSG_BYTES 512

struct dv_err {
    enum dv_code code;
    char msg[DV_ERR_MSG_BYTES]; /* "outer step: inner step: cause"; cut at a character when long */
    const char *whole; /* the message when `msg` is cut and it was kept; lives as dv_fail_in says */
};

/* Sets the error at its cause. Returns false. */
bool dv_fail(struct dv_err *err, enum dv_code code, const char *fmt, ...) DV_PRINTF(3, 4);
/* Like dv_fail, for a message that may quote a text of any length and that a client of an API gets
 * whole: what `msg` has no room for is kept in `arena`, up to 64 KiB. Ask for it by dv_err_text
 * before the arena is freed; wrapped, an error has only `msg`. */
bool dv_fail_in(struct dv_err *err, struct dv_arena *arena, enum dv_code code, const char *fmt, ...)
    DV_PRINTF(4, 5);
/* The message, whole if it was kept. */
const char *dv_err_text(const struct dv_err *err);
/* Like dv_fail, with the arguments of a variadic function. */
bool dv_vfail(struct dv_err *err, enum dv_code code, const char *fmt, va_list args) DV_PRINTF(3, 0);
/* Like dv_fail, with the code for an errno value, whose text is appended after ": ". */
bool dv_fail_errno(struct dv_err *err, int errnum, const char *fmt, ...) DV_PRINTF(3, 4);
/* No error: for where a status is told that may be success. Returns true. */
static inline bool dv_succeed(struct dv_err *err)
{
    err->code = DV_OK;
    err->msg[0] = '\0';
    err->whole = NULL;
    return true;
}
/* Puts what this level knows before the message: "what: " + msg. Returns false. */
bool dv_wrap(struct dv_err *err, const char *fmt, ...) DV_PRINTF(2, 3);
/* Copies the message into `size` bytes, more than 4; cut at a character when it is longer. */
void dv_err_copy(const struct dv_err *err, char *msg, size_t size);

/* "DEADLINE_EXCEEDED"; "CODE" for a number outside the table. */
const char *dv_code_name(enum dv_code code);
/* "DeadlineExceeded", as Go names it; "Unknown" for a number outside the table. */
const char *dv_code_go_name(enum dv_code code);
/* Adds "rpc error: code = DeadlineExceeded desc = " and the message, as Go prints the error of a
 * call: texts of the API have it so. */
void dv_err_print_rpc(const struct dv_err *err, struct dv_buf *buf);
enum dv_code dv_code_from_errno(int errnum);

#endif

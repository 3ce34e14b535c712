/* davit/davit.h - what the headers of davit's libraries have in common.
 *
 * Text is UTF-8 and ends with a NUL. A function that can fail returns false or NULL, or says how,
 * and then fills in its `error`, which may be NULL if you do not want to know. Running out of
 * memory aborts.
 *
 * Stability: what these headers declare stays as it is for the life of a soname (libdavit.so.0,
 * libdavit-driver.so.0): functions, structs, and the numbers of constants. New functions and
 * constants may come, each with a symbol version of its own, so that a program that uses them does
 * not start with an older library. Be ready for codes and kinds of events that you do not know. */
#ifndef DAVIT_DAVIT_H
#define DAVIT_DAVIT_H

#ifdef __cplusplus
extern "C" {
#endif

#define DAVIT_API __attribute__((visibility("default")))
#define DAVIT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* ---- errors ---- */

/* Numbered as the gRPC statuses. */
enum davit_code {
    DAVIT_OK = 0,
    DAVIT_CANCELLED = 1,
    DAVIT_UNKNOWN = 2,
    DAVIT_INVALID_ARGUMENT = 3,
    DAVIT_DEADLINE_EXCEEDED = 4,
    DAVIT_NOT_FOUND = 5,
    DAVIT_ALREADY_EXISTS = 6,
    DAVIT_PERMISSION_DENIED = 7,
    DAVIT_RESOURCE_EXHAUSTED = 8,
    DAVIT_FAILED_PRECONDITION = 9,
    DAVIT_ABORTED = 10,
    DAVIT_OUT_OF_RANGE = 11,
    DAVIT_UNIMPLEMENTED = 12,
    DAVIT_INTERNAL = 13,
    DAVIT_UNAVAILABLE = 14,
    DAVIT_DATA_LOSS = 15,
    DAVIT_UNAUTHENTICATED = 16
};

#define DAVIT_ERROR_BYTES 256

struct davit_error {
    enum davit_code code;            /* what a program branches on */
    char message[DAVIT_ERROR_BYTES]; /* what a person reads */
};

#ifdef __cplusplus
}
#endif

#endif

/* defs.h - the few language helpers that everything uses. */
#ifndef DV_BASE_DEFS_H
#define DV_BASE_DEFS_H

#include <stddef.h>

/* The caller must use the result. */
#define DV_CHECKED __attribute__((warn_unused_result))
#define DV_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* Runs fn(&variable) when the variable goes out of scope. */
#define DV_CLEANUP(fn) __attribute__((cleanup(fn)))

/* The struct that embeds the member. */
#define DV_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define DV_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Under a sanitizer memory is not shared out by us: it is to see the use of what was given back. */
#if defined(__SANITIZE_ADDRESS__)
#define DV_IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DV_IS_SANITIZED 1
#endif
#endif
#ifndef DV_IS_SANITIZED
#define DV_IS_SANITIZED 0
#endif

/* Closes *fd unless it is negative; for DV_CLEANUP. */
void dv_close_fd(const int *fd);

#endif

/* podlog_line.h - one line of a log file. */
#ifndef DV_PODLOG_LINE_H
#define DV_PODLOG_LINE_H

#include <stdbool.h>

#include "base/calendar.h"
#include "base/defs.h"
#include "base/str.h"

struct dv_arena;

enum dv_podlog_format {
    PODLOG_UNKNOWN,
    PODLOG_CRI,
    PODLOG_DOCKER, /* JSON */
};

struct dv_podlog_line {
    struct dv_rfc3339 time;
    dv_str text; /* with its newline, where one belongs to it */
    bool is_stderr;
    bool is_partial; /* the newline of the file's line does not belong to it */
};

/* Parses a line with its newline, if it has one. The text is part of the line, or in the arena.
 * False: it is not of this format. */
DV_CHECKED bool dv_podlog_line_parse(enum dv_podlog_format format, dv_str line,
                                     struct dv_arena *arena, struct dv_podlog_line *parsed);

#endif

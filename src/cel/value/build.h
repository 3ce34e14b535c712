/* build.h - text built during an evaluation, in its arena. */
#ifndef DV_CEL_BUILD_H
#define DV_CEL_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct dv_arena;
struct dv_cel_run;
struct dv_cel_val;

/* A text that grows by doubling. Bytes beyond DV_CEL_STRING_MAX are left out, and dv_cel_build_end
 * stops the evaluation. */
struct dv_cel_build {
    struct dv_arena *arena;
    char *p;
    size_t n;
    size_t size;
    bool is_over;
};

void dv_cel_build_add(struct dv_cel_build *build, dv_str s);
void dv_cel_build_char(struct dv_cel_build *build, char c);
void dv_cel_build_code_point(struct dv_cel_build *build, uint32_t c);
/* Adds Go's escape of the character, "\\n" for a line's end; false where it needs none of one
 * letter. */
bool dv_cel_build_escape(struct dv_cel_build *build, char c);
struct dv_cel_val dv_cel_build_end(struct dv_cel_run *run, const struct dv_cel_build *build);

#endif

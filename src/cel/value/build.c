#include "cel/value/build.h"

#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"

static bool make_room(struct dv_cel_build *build, size_t n)
{
    size_t size = build->size ? build->size : 64;
    char *p;

    if (build->is_over || n > DV_CEL_STRING_MAX - build->n) {
        build->is_over = true;
        return false;
    }
    if (n <= build->size - build->n)
        return true;
    while (size < build->n + n)
        size *= 2;
    p = dv_arena_alloc_raw(build->arena, size, 1);
    if (build->n > 0)
        memcpy(p, build->p, build->n);
    build->p = p;
    build->size = size;
    return true;
}

void dv_cel_build_add(struct dv_cel_build *build, dv_str s)
{
    if (s.n == 0 || !make_room(build, s.n))
        return;
    memcpy(build->p + build->n, s.p, s.n);
    build->n += s.n;
}

void dv_cel_build_char(struct dv_cel_build *build, char c)
{
    dv_cel_build_add(build, (dv_str){&c, 1});
}

void dv_cel_build_code_point(struct dv_cel_build *build, uint32_t c)
{
    char p[4];
    size_t n;

    if (c < 0x80) {
        p[0] = (char)c;
        n = 1;
    } else if (c < 0x800) {
        p[0] = (char)(0xc0 | c >> 6);
        p[1] = (char)(0x80 | (c & 0x3f));
        n = 2;
    } else if (c < 0x10000) {
        p[0] = (char)(0xe0 | c >> 12);
        p[1] = (char)(0x80 | (c >> 6 & 0x3f));
        p[2] = (char)(0x80 | (c & 0x3f));
        n = 3;
    } else {
        p[0] = (char)(0xf0 | c >> 18);
        p[1] = (char)(0x80 | (c >> 12 & 0x3f));
        p[2] = (char)(0x80 | (c >> 6 & 0x3f));
        p[3] = (char)(0x80 | (c & 0x3f));
        n = 4;
    }
    dv_cel_build_add(build, (dv_str){p, n});
}

bool dv_cel_build_escape(struct dv_cel_build *build, char c)
{
    static const char escapes[][2] = {
        {'\a', 'a' },
        {'\b', 'b' },
        {'\f', 'f' },
        {'\n', 'n' },
        {'\r', 'r' },
        {'\t', 't' },
        {'\v', 'v' },
        {'\\', '\\'},
        {'"',  '"' },
    };

    for (size_t i = 0; i < DV_COUNT(escapes); i++) {
        if (escapes[i][0] == c) {
            dv_cel_build_char(build, '\\');
            dv_cel_build_char(build, escapes[i][1]);
            return true;
        }
    }
    return false;
}

struct dv_cel_val dv_cel_build_end(struct dv_cel_run *run, const struct dv_cel_build *build)
{
    struct dv_cel_val val;

    if (!build->is_over)
        return dv_cel_string((dv_str){build->p, build->n});
    dv_cel_run_stop(run, DV_CEL_FAULT_MEMORY, &val);
    return val;
}

#include "base/path.h"

#include <stdbool.h>

#include "base/arena.h"

/* Where the last name in text[0, n) begins; the slash before it stays. */
static size_t last_name(const char *text, size_t n)
{
    while (n > 0 && text[n - 1] != '/')
        n--;
    return n;
}

/* Adds a name to the text[0, n) so far, or takes one off it for "..". Returns its new length. */
static size_t add_name(char *text, size_t n, dv_str name, bool is_absolute)
{
    size_t last = last_name(text, n);
    bool is_up = dv_str_eq(name, DV_STR(".."));
    bool has_name = n > last && !dv_str_eq((dv_str){&text[last], n - last}, DV_STR(".."));

    if (is_up && has_name)
        return last > (is_absolute ? 1u : 0u) ? last - 1 : last;
    if (is_up && is_absolute)
        return n; /* over the root is the root */
    if (n > 0 && text[n - 1] != '/')
        text[n++] = '/';
    memcpy(&text[n], name.p, name.n);
    return n + name.n;
}

static dv_str clean(dv_str path, bool is_absolute, struct dv_arena *arena)
{
    char *text = dv_arena_alloc_raw(arena, path.n + 1, 1); /* a slash may come before it */
    size_t n = 0;
    dv_str name;

    if (is_absolute)
        text[n++] = '/';
    while (path.n > 0 && dv_str_split(&path, '/', &name)) {
        if (name.n > 0 && !dv_str_eq(name, DV_STR(".")))
            n = add_name(text, n, name, is_absolute);
    }
    return n > 0 ? (dv_str){text, n} : DV_STR(".");
}

dv_str dv_path_clean(dv_str path, struct dv_arena *arena)
{
    return clean(path, dv_str_starts_with(path, DV_STR("/")), arena);
}

dv_str dv_path_clean_absolute(dv_str path, struct dv_arena *arena)
{
    return clean(path, true, arena);
}

dv_str dv_path_dir(dv_str path)
{
    while (path.n > 0 && path.p[path.n - 1] != '/')
        path.n--;
    return dv_str_slice(path, 0, path.n > 0 ? path.n - 1 : 0);
}

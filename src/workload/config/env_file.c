#include "workload/config/env_file.h"

#include <stddef.h>

#include "base/arena.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static dv_str skip_blanks(dv_str text)
{
    while (text.n > 0 && is_blank(text.p[0]))
        text = dv_str_slice(text, 1, text.n);
    return text;
}

/* Takes a line off the front, without its end. */
static dv_str take_line(dv_str *rest)
{
    size_t end = dv_str_find_char(*rest, '\n');
    dv_str line = dv_str_slice(*rest, 0, end);

    *rest = dv_str_slice(*rest, end + 1, rest->n);
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

/* A value over several lines: their ends are line feeds, whatever the file has. */
static dv_str without_returns(dv_str value, struct dv_arena *arena)
{
    char *copy;
    size_t n = 0;

    if (dv_str_find(value, DV_STR("\r\n")) == value.n)
        return value;
    copy = dv_arena_alloc_raw(arena, value.n, 1);
    for (size_t i = 0; i < value.n; i++)
        if (value.p[i] != '\r' || i + 1 == value.n || value.p[i + 1] != '\n')
            copy[n++] = value.p[i];
    return (dv_str){copy, n};
}

/* Takes the value and the rest of its line off the front. `rest` begins with a quote. */
static bool take_value(dv_str *rest, dv_str *value)
{
    dv_str body = dv_str_slice(*rest, 1, rest->n);
    size_t end = dv_str_find_char(body, '\'');
    dv_str after;

    if (end == body.n)
        return false;
    *value = dv_str_slice(body, 0, end);
    *rest = dv_str_slice(body, end + 1, body.n);
    after = skip_blanks(take_line(rest));
    return after.n == 0 || after.p[0] == '#';
}

bool dv_env_file_find(dv_str text, dv_str name, struct dv_arena *arena, dv_str *value)
{
    while (text.n > 0) {
        dv_str rest = text;
        dv_str line = take_line(&rest);
        dv_str start = skip_blanks(line);
        size_t equals = dv_str_find_char(start, '=');
        dv_str found = {0};

        if (start.n == 0 || start.p[0] == '#') {
            text = rest;
            continue;
        }
        if (equals == start.n || equals == 0 || is_blank(start.p[equals - 1]))
            return false;
        if (equals + 1 < start.n && is_blank(start.p[equals + 1])) {
            text = rest; /* as in a shell: the variable is empty */
        } else {
            if (equals + 1 == start.n || start.p[equals + 1] != '\'')
                return false;
            text = (dv_str){start.p + equals + 1, text.n - (size_t)(start.p + equals + 1 - text.p)};
            if (!take_value(&text, &found))
                return false;
        }
        if (dv_str_eq(dv_str_slice(start, 0, equals), name)) {
            *value = without_returns(found, arena);
            return true;
        }
    }
    *value = DV_STR("");
    return true;
}

#include "podlog/podlog_line.h"

#include "base/err.h"
#include "json/json.h"

#define LINE_DEPTH_MAX 16u

static bool find_stream(dv_str name, bool *is_stderr)
{
    *is_stderr = dv_str_eq(name, DV_STR("stderr"));
    return *is_stderr || dv_str_eq(name, DV_STR("stdout"));
}

/* Takes the text before the next blank, and the blank. */
static bool take_word(dv_str *rest, dv_str *word)
{
    size_t n = dv_str_find_char(*rest, ' ');

    if (n == rest->n)
        return false;
    *word = dv_str_slice(*rest, 0, n);
    *rest = dv_str_slice(*rest, n + 1, rest->n);
    return true;
}

static bool parse_cri(dv_str line, struct dv_podlog_line *parsed)
{
    dv_str rest = line;
    dv_str time;
    dv_str stream;
    dv_str tags;
    dv_str tag;

    if (!take_word(&rest, &time) || !dv_rfc3339_parse(time, DV_RFC3339_LAX, &parsed->time) ||
        !take_word(&rest, &stream) || !find_stream(stream, &parsed->is_stderr) ||
        !take_word(&rest, &tags))
        return false;
    tag = dv_str_slice(tags, 0, dv_str_find_char(tags, ':')); /* others may follow one day */
    parsed->is_partial = dv_str_eq(tag, DV_STR("P"));
    if (parsed->is_partial && dv_str_ends_with(rest, DV_STR("\n")))
        rest.n--;
    parsed->text = rest;
    return true;
}

static bool parse_docker(dv_str line, struct dv_arena *arena, struct dv_podlog_line *parsed)
{
    struct dv_json_opts opts = {.depth_max = LINE_DEPTH_MAX, .replace_bad_utf8 = true};
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(line, &opts, arena, &err);
    const struct dv_json *text;
    dv_str stream;
    dv_str time;

    if (!dv_json_is(doc, DV_JSON_OBJECT))
        return false;
    *parsed = (struct dv_podlog_line){.text = DV_STR("")};
    text = dv_json_get(doc, DV_STR("log"));
    return (!text || dv_json_as_str(text, &parsed->text, &err)) &&
           dv_json_is(dv_json_get(doc, DV_STR("stream")), DV_JSON_STRING) &&
           dv_json_as_str(dv_json_get(doc, DV_STR("stream")), &stream, &err) &&
           find_stream(stream, &parsed->is_stderr) &&
           dv_json_is(dv_json_get(doc, DV_STR("time")), DV_JSON_STRING) &&
           dv_json_as_str(dv_json_get(doc, DV_STR("time")), &time, &err) &&
           dv_rfc3339_parse(time, DV_RFC3339_STRICT, &parsed->time);
}

bool dv_podlog_line_parse(enum dv_podlog_format format, dv_str line, struct dv_arena *arena,
                          struct dv_podlog_line *parsed)
{
    struct dv_podlog_line found = {.text = DV_STR("")};

    if (!(format == PODLOG_CRI ? parse_cri(line, &found) : parse_docker(line, arena, &found)))
        return false;
    *parsed = found;
    return true;
}

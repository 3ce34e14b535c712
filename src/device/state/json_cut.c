#include "device/state/json_cut.h"

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

/* Skips a string, from its first quote to behind its last. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\')
            at++;
    return at < end ? at + 1 : end;
}

/* Skips a value. */
static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        char c = *at;

        if (depth == 0 && (c == ',' || c == ']' || c == '}' || c == ':'))
            break; /* the end of the container */
        if (c == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (c == '[' || c == '{')
            depth++;
        else if (c == ']' || c == '}')
            depth--;
        at++;
    }
    return at;
}

void dv_device_cut_init(struct dv_device_cut *cut, dv_str container)
{
    dv_str trimmed = dv_str_trim(container);

    *cut = (struct dv_device_cut){trimmed.p + 1, trimmed.p + trimmed.n - 1};
}

static dv_str take_value(struct dv_device_cut *cut)
{
    const char *from = skip_blanks(cut->at, cut->end);

    cut->at = skip_value(from, cut->end);
    return dv_str_trim((dv_str){from, (size_t)(cut->at - from)});
}

bool dv_device_cut_element(struct dv_device_cut *cut, dv_str *value)
{
    if (skip_blanks(cut->at, cut->end) == cut->end)
        return false;
    *value = take_value(cut);
    if (cut->at < cut->end)
        cut->at++; /* the comma */
    return true;
}

bool dv_device_cut_member(struct dv_device_cut *cut, dv_str *key, dv_str *value)
{
    if (skip_blanks(cut->at, cut->end) == cut->end)
        return false;
    *key = take_value(cut);
    if (cut->at < cut->end)
        cut->at++; /* the colon */
    *value = take_value(cut);
    if (cut->at < cut->end)
        cut->at++; /* the comma */
    return true;
}

#include "lib/inventory/alloc_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "davit/alloc.h"
#include "resource/resource.h"
#include "json/json.h"

static_assert(DAVIT_UNAUTHENTICATED == (int)DV_UNAUTHENTICATED, "codes cross as numbers");

bool dv_lib_tell(struct davit_error *error, const struct dv_err *err)
{
    if (error) {
        error->code = (enum davit_code)err->code;
        dv_err_copy(err, error->message, sizeof(error->message));
    }
    return false;
}

char *dv_lib_answer(const struct dv_buf *buf, struct dv_err *err)
{
    char *text;

    if (!dv_buf_check(buf, "the answer", err))
        return NULL;
    text = dv_alloc(buf->n + 1);
    if (buf->n)
        memcpy(text, buf->p, buf->n);
    return text;
}

void davit_free(char *text)
{
    free(text);
}

struct dv_json *dv_lib_parse(const char *text, struct dv_arena *arena, struct dv_err *err)
{
    struct dv_json *json;

    if (!text) {
        (void)dv_fail(err, DV_INVALID_ARGUMENT, "there is no text");
        return NULL;
    }
    json = dv_json_parse(dv_str_from_c(text), NULL, arena, err);
    return json && dv_json_expect(json, DV_JSON_OBJECT, err) ? json : NULL;
}

bool dv_lib_kind(const struct dv_json *json, const struct dv_kind **kind,
                 const struct dv_message **message, struct dv_err *err)
{
    const struct dv_json *name_json = dv_json_require(json, DV_STR("kind"), err);
    const struct dv_json *version_json;
    const struct dv_api_version *found = NULL;
    dv_str name;
    dv_str text;
    dv_str group;
    dv_str version;

    if (!name_json || !dv_json_as_str(name_json, &name, err))
        return false;
    version_json = dv_json_require(json, DV_STR("apiVersion"), err);
    if (!version_json || !dv_json_as_str(version_json, &text, err))
        return false;
    dv_api_version_split(text, &group, &version);
    *kind = dv_kind_by_name(group, version, name, &found);
    *message = *kind ? found->message : NULL;
    return true;
}

void *dv_lib_read_part(const struct dv_json *json, const struct dv_message *message,
                       struct dv_arena *arena, struct dv_err *err)
{
    void *value = dv_arena_alloc(arena, message->size, message->align);

    return dv_decode_json(message, json, DV_UNKNOWN_DROP, arena, value, NULL, err) ? value : NULL;
}

void *dv_lib_read(const struct dv_json *json, const struct dv_kind *kind, struct dv_arena *arena,
                  struct dv_err *err)
{
    const struct dv_api_version *version = &kind->versions[0];
    const struct dv_kind *own = kind;
    const struct dv_message *message = version->message;
    void *value;

    if (dv_json_get(json, DV_STR("kind")) && !dv_lib_kind(json, &own, &message, err))
        return NULL;
    if (own != kind) {
        (void)dv_json_fail(json, err, "expected a %.*s", DV_FMT(kind->name));
        return NULL;
    }
    for (size_t i = 0; i < kind->n_versions; i++)
        if (kind->versions[i].message == message)
            version = &kind->versions[i];
    value = dv_lib_read_part(json, message, arena, err);
    if (value)
        dv_default(kind, version, value, (struct dv_time){0}, arena);
    return value;
}

/* Whatever the template, it is printed or refused; what has no brace in it is printed as it is. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"
#include "json/jsonpath.h"

#define TEXT_BYTES_MAX (1u << 20)
#define TEMPLATE_BYTES_MAX 200u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "{\"a\":[{\"b\":1,\"c\":\"x\"},{\"b\":2,\"d\":[3,4]}],\"e\":null}";
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str template = {(const char *)data, size};
    const struct dv_json *doc;
    struct dv_buf buf;
    struct dv_err err;
    bool ok;

    if (size > TEMPLATE_BYTES_MAX)
        return 0;
    doc = dv_json_parse(dv_str_from_c(text), NULL, arena, &err);
    assert(doc);
    dv_buf_init(&buf, TEXT_BYTES_MAX);
    ok = dv_jsonpath_print(template, doc, arena, &buf, &err);
    if (dv_str_find_char(template, '{') == size &&
        (size == 0 || (data[0] != '.' && data[0] != '$' && data[0] != '[')))
        assert(ok && dv_str_eq(dv_buf_str(&buf), template));
    dv_buf_fini(&buf);
    return 0;
}

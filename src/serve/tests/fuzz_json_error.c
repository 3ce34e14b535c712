/* What is told as broken JSON is what our reader refuses, and nothing else. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "serve/wire/kube_json_error.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const struct dv_json_opts opts = {.replace_bad_utf8 = true};
    dv_str text = {(const char *)data, size};
    struct dv_buf message;
    struct dv_err err = {.code = DV_OK};
    bool is_read = dv_json_parse(text, &opts, arena, &err) != NULL;

    dv_buf_init(&message, 4096);
    if (err.code != DV_RESOURCE_EXHAUSTED)
        assert(dv_json_error_print(text, &message) == !is_read);
    dv_buf_fini(&message);
    return 0;
}

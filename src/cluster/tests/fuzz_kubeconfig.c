/* fuzz_kubeconfig.c - kubeconfigs: what is taken from one, written as another, is taken from that
 * as well. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cluster/remote.h"
#include "cluster/remote/exec_plugin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXT_BYTES_MAX (64u << 20)

static void add_text(struct dv_buf *buf, const char *key, dv_str value)
{
    if (value.n == 0)
        return;
    dv_buf_printf(buf, ",\"%s\":", key);
    dv_buf_add_json(buf, value);
}

static void add_data(struct dv_buf *buf, const char *key, dv_str value, struct dv_arena *arena)
{
    struct dv_buf data;

    dv_buf_init(&data, TEXT_BYTES_MAX);
    dv_base64_encode(value, &data);
    add_text(buf, key, dv_str_copy(dv_buf_str(&data), arena));
    dv_buf_fini(&data);
}

static dv_str print(const struct dv_kubeconfig *config, struct dv_arena *arena)
{
    struct dv_buf buf;
    dv_str text;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, "{\"current-context\":\"c\",\"clusters\":[{\"name\":\"k\",\"cluster\":{"
                       "\"x\":0");
    add_text(&buf, "server", config->server);
    add_data(&buf, "certificate-authority-data", config->ca, arena);
    dv_buf_add_c(&buf, "}}],\"users\":[{\"name\":\"u\",\"user\":{\"x\":0");
    add_text(&buf, "token", config->token);
    add_data(&buf, "client-certificate-data", config->cert, arena);
    add_data(&buf, "client-key-data", config->key, arena);
    dv_buf_add_c(&buf, "}}],\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\",\"user\":"
                       "\"u\"");
    add_text(&buf, "namespace", config->namespace);
    dv_buf_add_c(&buf, "}}]}");
    text = dv_str_copy(dv_buf_str(&buf), arena);
    dv_buf_fini(&buf);
    return text;
}

/* What a program for credentials may print: it says who we are, or nothing. */
static void check_answer(dv_str text, struct dv_arena *arena)
{
    struct dv_exec_answer answer;
    struct dv_err err;

    if (dv_exec_answer_parse(text, DV_STR("client.authentication.k8s.io/v1"), arena, &answer, &err))
        assert(answer.token.n + answer.cert.n > 0 && (answer.cert.n > 0) == (answer.key.n > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str text = {(const char *)data, size};
    dv_str dir = DV_STR("/nonexistent");
    struct dv_kubeconfig config;
    struct dv_kubeconfig again;
    struct dv_err err;

    /* Files are not what this is about, and some of them would make it wait. */
    if (dv_str_find(text, DV_STR("/dev")) < text.n || dv_str_find(text, DV_STR("\\")) < text.n)
        return 0;
    check_answer(text, arena);
    if (!dv_kubeconfig_parse(text, dir, DV_STR_NONE, arena, &config, &err)) {
        assert(err.msg[0]);
        return 0;
    }
    assert(config.server.n > 0);
    assert(dv_kubeconfig_parse(print(&config, arena), dir, DV_STR_NONE, arena, &again, &err));
    assert(dv_str_eq(config.server, again.server) && dv_str_eq(config.token, again.token));
    assert(dv_str_eq(config.ca, again.ca) && dv_str_eq(config.cert, again.cert));
    assert(dv_str_eq(config.key, again.key) && dv_str_eq(config.namespace, again.namespace));
    return 0;
}

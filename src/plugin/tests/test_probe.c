#include "plugin/tests/test_probe.h"

#include <string.h>

#include "plugin/tests/test_plugin_node.h"
#include "support/dvtest.h"

static dv_str short_name(const struct probe *probe, dv_str path)
{
    return dv_str_slice(path, strlen(probe->node->registry) + 1, path.n);
}

static bool on_found(struct dv_plugin_watcher_owner *owner, dv_str path)
{
    struct probe *probe = DV_CONTAINER(owner, struct probe, owner);

    if (probe->refuse > 0) {
        probe->refuse--;
        return false;
    }
    probe->n_found++;
    dv_buf_printf(&probe->told, "+%.*s ", DV_FMT(short_name(probe, path)));
    return true;
}

static void on_lost(struct dv_plugin_watcher_owner *owner, dv_str path)
{
    struct probe *probe = DV_CONTAINER(owner, struct probe, owner);

    probe->n_lost++;
    dv_buf_printf(&probe->told, "-%.*s ", DV_FMT(short_name(probe, path)));
}

static void on_closed(void *ctx)
{
    ((struct probe *)ctx)->n_closed++;
}

bool probe_has_scanned(void *ctx)
{
    return dv_plugin_watcher_has_scanned(((struct probe *)ctx)->watcher);
}

void probe_open(struct probe *probe, struct node *node)
{
    struct dv_err err;

    probe->node = node;
    probe->owner = (struct dv_plugin_watcher_owner){on_found, on_lost};
    dv_buf_init(&probe->told, 1u << 20);
    probe->watcher =
        dv_plugin_watcher_open(node->loop, dv_str_from_c(node->registry), &probe->owner, &err);
    assert_non_null(probe->watcher);
    assert_int_equal(probe->n_found, 0);
}

void probe_start(struct probe *probe, struct node *node)
{
    probe_open(probe, node);
    node_wait(node, probe_has_scanned, probe);
}

void probe_end(struct probe *probe)
{
    dv_plugin_watcher_close(probe->watcher, on_closed, probe);
    assert_int_equal(probe->n_closed, 0);
    wait_count(probe->node, &probe->n_closed, 1);
    dv_buf_fini(&probe->told);
}

static bool is_idle(void *ctx)
{
    return dv_plugin_watcher_is_idle(((struct probe *)ctx)->watcher);
}

void probe_settle(struct probe *probe)
{
    for (int i = 0; i < 5; i++) {
        settle(probe->node);
        node_wait(probe->node, is_idle, probe);
    }
}

void assert_told(struct probe *probe, const char *told)
{
    probe_settle(probe);
    assert_string_equal(dv_buf_c(&probe->told), told);
    dv_buf_clear(&probe->told);
}

const char *path_of(const struct probe *probe, const char *name)
{
    return node_path(probe->node, name);
}

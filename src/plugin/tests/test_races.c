/* A process that makes, moves and removes sockets and directories as fast as it can, while the
 * watcher looks: when it has ended, the watcher knows exactly what is there. */
#include "support/dvtest.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "plugin/tests/test_plugin_node.h"
#include "plugin/watcher.h"
#include "support/scratch.h"

#define ROUNDS 12u
#define STEPS 1500u

/* ---- the process ---- */

/* A name of one of three sorts of places; few, so that they are used again and again. */
static void pick_path(char *path, size_t n, const char *registry, unsigned *seed)
{
    unsigned a = (unsigned)rand_r(seed) % 4;
    unsigned b = (unsigned)rand_r(seed) % 4;
    unsigned c = (unsigned)rand_r(seed) % 4;

    switch (rand_r(seed) % 3) {
    case 0:
        (void)snprintf(path, n, "%s/%u", registry, a);
        break;
    case 1:
        (void)snprintf(path, n, "%s/%u/%u", registry, a, b);
        break;
    default:
        (void)snprintf(path, n, "%s/%u/%u/%u", registry, a, b, c);
        break;
    }
}

/* Whatever fails, fails: the names are in the way of each other. */
static void step(const char *registry, unsigned *seed)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char other[sizeof(address.sun_path)];
    int fd;

    pick_path(address.sun_path, sizeof(address.sun_path), registry, seed);
    pick_path(other, sizeof(other), registry, seed);
    switch (rand_r(seed) % 8) {
    case 0:
    case 1:
        (void)mkdir(address.sun_path, 0700);
        break;
    case 2:
    case 3:
    case 4:
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        (void)bind(fd, (struct sockaddr *)&address, sizeof(address));
        (void)close(fd);
        break;
    case 5:
        (void)unlink(address.sun_path);
        break;
    case 6:
        (void)rename(address.sun_path, other);
        break;
    default:
        (void)rmdir(address.sun_path);
        break;
    }
}

static pid_t start_steps(const char *registry, unsigned seed)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    for (unsigned i = 0; i < STEPS; i++) {
        step(registry, &seed);
        if (rand_r(&seed) % 16 == 0)
            (void)usleep(200); /* so that the watcher is in the middle of something */
    }
    _exit(0);
}

/* ---- the watcher ---- */

struct known {
    struct dv_plugin_watcher_owner owner;
    struct dv_plugin_watcher *watcher;
    struct dv_map paths; /* of the heap */
    pid_t pid;
    int n_closed;
};

static struct known known; /* for nftw, which passes nothing on */

static bool on_found(struct dv_plugin_watcher_owner *owner, dv_str path)
{
    char *copy = strndup(path.p, path.n);

    (void)owner;
    assert_non_null(copy);
    free(dv_map_set(&known.paths, dv_str_from_c(copy), copy)); /* it may be told again */
    return true;
}

static void on_lost(struct dv_plugin_watcher_owner *owner, dv_str path)
{
    char *copy = dv_map_remove(&known.paths, path);

    (void)owner;
    assert_non_null(copy);
    free(copy);
}

static void on_closed(void *ctx)
{
    ((struct known *)ctx)->n_closed++;
}

static bool has_ended(void *ctx)
{
    (void)ctx;
    return waitpid(known.pid, NULL, WNOHANG) == known.pid;
}

static bool is_idle(void *ctx)
{
    (void)ctx;
    return dv_plugin_watcher_is_idle(known.watcher);
}

static int count_socket(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
    (void)type;
    (void)ftw;
    if (S_ISSOCK(info->st_mode)) {
        char *copy = dv_map_remove(&known.paths, dv_str_from_c(path));

        if (!copy)
            fail_msg("%s is there, and not known", path);
        free(copy);
    }
    return 0;
}

static void assert_known_is_there(struct node *node)
{
    const struct dv_map_entry *entry;
    size_t at = 0;

    assert_int_equal(nftw(node->registry, count_socket, 16, FTW_PHYS), 0);
    entry = dv_map_next(&known.paths, &at);
    if (entry)
        fail_msg("%s is known, and not there", (const char *)entry->value);
}

static void what_is_known_in_the_end_is_what_is_there(void **state)
{
    struct node *node = *state;
    struct dv_err err;

    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        make_dir(node->registry);
        known = (struct known){
            .owner = {on_found, on_lost}
        };
        dv_map_init(&known.paths);
        known.pid = start_steps(node->registry, seed); /* at work before the watcher is */
        known.watcher =
            dv_plugin_watcher_open(node->loop, dv_str_from_c(node->registry), &known.owner, &err);
        assert_non_null(known.watcher);
        while (!has_ended(NULL))
            settle(node);
        for (int i = 0; i < 5; i++) {
            settle(node);
            node_wait(node, is_idle, NULL);
        }
        while (dv_plugin_watcher_err(known.watcher)->code != DV_OK) {
            advance(node, 1000); /* in the turmoil something could not be watched */
            node_wait(node, is_idle, NULL);
        }
        assert_known_is_there(node);
        dv_plugin_watcher_close(known.watcher, on_closed, &known);
        wait_count(node, &known.n_closed, 1);
        dv_map_fini(&known.paths);
        scratch_remove(node->registry);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_known_in_the_end_is_what_is_there, node_start,
                                        node_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

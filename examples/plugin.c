/* plugin.c - a device plugin in less than a hundred lines: device nodes of this host, by name.
 *
 *     cc plugin.c $(pkg-config --cflags --libs davit-driver) -o plugin
 *     ./plugin example.com/tty ttyS0 ttyS1
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <davit/driver.h>

#define DEVICES_MAX 64

static void path_of(const char *id, char *path, size_t size)
{
    (void)snprintf(path, size, "/dev/%s", id);
}

/* A container gets these: their nodes, and a variable that names them. */
static void allocate(void *ctx, struct davit_call *call,
                     const struct davit_allocate_request *request)
{
    char path[128];
    char all[1024] = "";
    size_t n = 0;

    (void)ctx;
    for (size_t i = 0; i < request->n_ids; i++) {
        path_of(request->ids[i], path, sizeof(path));
        davit_allocate_add_device(call, path, NULL, "rw");
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? "," : "", request->ids[i]);
    }
    davit_allocate_add_env(call, "DEVICES", all);
    davit_call_finish(call);
}

static void event(void *ctx, const struct davit_event *event)
{
    (void)ctx;
    if (event->kind == DAVIT_REGISTERED)
        (void)printf("registered\n");
    else if (event->kind == DAVIT_PROBLEM)
        (void)printf("%s; trying again\n", event->error.message);
    (void)fflush(stdout);
}

static void stop(void *ctx, int signum)
{
    (void)signum;
    davit_driver_stop(ctx);
}

int main(int argc, char **argv)
{
    struct davit_device_plugin_options options = {
        .resource = argc > 2 ? argv[1] : NULL,
        .socket_dir = getenv("DEVICE_PLUGINS_DIR"), /* NULL: the kubelet's */
        .allocate = allocate,
        .event = event,
    };
    struct davit_device devices[DEVICES_MAX];
    struct davit_device_plugin *plugin;
    struct davit_driver *driver;
    struct davit_error error;
    size_t n = 0;

    if (argc < 3) {
        (void)fprintf(stderr, "usage: %s RESOURCE DEVICE...\n", argv[0]);
        return 2;
    }
    for (int i = 2; i < argc && n < DEVICES_MAX; i++) {
        char path[128];

        path_of(argv[i], path, sizeof(path));
        devices[n++] = (struct davit_device){.id = argv[i], .is_healthy = access(path, F_OK) == 0};
    }
    driver = davit_driver_new(&error);
    plugin = driver ? davit_device_plugin_open(driver, &options, &error) : NULL;
    if (!plugin || !davit_device_plugin_set_devices(plugin, devices, n, &error) ||
        !davit_driver_on_signal(driver, SIGTERM, stop, driver, &error)) {
        (void)fprintf(stderr, "%s\n", error.message);
        davit_driver_free(driver);
        return 1;
    }
    davit_driver_run(driver);
    davit_driver_free(driver);
    return 0;
}

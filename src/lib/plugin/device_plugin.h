/* device_plugin.h - the insides of a davit_device_plugin. */
#ifndef DV_LIB_DEVICE_PLUGIN_H
#define DV_LIB_DEVICE_PLUGIN_H

#include <stddef.h>

#include "base/list.h"
#include "base/str.h"
#include "davit/driver.h"
#include "grpc/grpc.h"
#include "lib/common/dir.h"
#include "lib/common/lib_call.h"
#include "lib/common/parts.h"
#include "lib/common/registry.h"
#include "lib/common/socket.h"
#include "lib/common/streams.h"
#include "lib/plugin/classic.h"
#include "loop/loop.h"

struct dv_arena;
struct dv_h2_msg;
struct dv_lib_devices;

/* One way to be found by an agent: a socket with the plugin's service, in a watched directory. */
struct dv_lib_way {
    struct davit_device_plugin *plugin;
    unsigned through; /* DAVIT_REGISTER_*; 0: not used */
    dv_str path;
    struct dv_service services[2];
    struct dv_lib_dir dir;
    struct dv_lib_socket socket;
    struct dv_lib_streams streams;
};

struct davit_device_plugin {
    struct davit_driver *driver;
    struct dv_link link; /* in its plugins */
    struct dv_arena *arena;
    struct davit_device_plugin_options options; /* texts are in the arena */
    dv_str resource;
    struct dv_lib_devices *devices; /* NULL: none set yet */
    struct dv_h2_msg *list;         /* of them, as it was last told; NULL: never */
    struct dv_task push_task;
    struct dv_lib_rpcs rpcs;
    struct dv_lib_parts parts;
    struct dv_lib_way classic_way;
    struct dv_lib_classic classic;
    struct dv_lib_way watcher_way;
    struct dv_lib_registry registry;
};

/* The methods of v1beta1.DevicePlugin; their ctx is a struct dv_lib_way. */
extern const struct dv_method dv_lib_device_methods[];
extern const size_t dv_lib_n_device_methods;

#endif

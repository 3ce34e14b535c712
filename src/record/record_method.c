/* record_method.c - the methods between a node's agent and its plugins, and their messages. */
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"
#include "proto/deviceplugin_v1alpha2.pb-c.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"
#include "proto/dra_v1.pb-c.h"
#include "proto/dra_v1alpha1.pb-c.h"
#include "proto/dra_v1alpha2.pb-c.h"
#include "proto/dra_v1alpha3.pb-c.h"
#include "proto/dra_v1beta1.pb-c.h"
#include "proto/health_v1.pb-c.h"
#include "proto/health_v1alpha1.pb-c.h"
#include "proto/registration_v1.pb-c.h"
#include "record/message.h"

#define DRA_V1 "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
#define DRA_V1BETA1 "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/"

/* Two old versions of the device plugins' API have the same paths, and so have two of DRA's: their
 * messages are shown by the later one's and the fuller one's types, and what these do not have as
 * unknown fields. */
static const struct dv_record_method methods[] = {
    {"/pluginregistration.Registration/GetInfo",                  &registration_v1__info_request__descriptor,
     &registration_v1__plugin_info__descriptor,                         DV_RECORD_TELLS_OF_PLUGIN},
    {"/pluginregistration.Registration/NotifyRegistrationStatus",
     &registration_v1__registration_status__descriptor,
     &registration_v1__registration_status_response__descriptor,        0                        },
    {"/v1beta1.Registration/Register",                            &dp_v1beta1__register_request__descriptor,
     &dp_v1beta1__empty__descriptor,                                    DV_RECORD_TELLS_OF_PLUGIN},
    {"/v1beta1.DevicePlugin/GetDevicePluginOptions",              &dp_v1beta1__empty__descriptor,
     &dp_v1beta1__device_plugin_options__descriptor,                    DV_RECORD_TELLS_OF_PLUGIN},
    {"/v1beta1.DevicePlugin/ListAndWatch",                        &dp_v1beta1__empty__descriptor,
     &dp_v1beta1__list_and_watch_response__descriptor,
     DV_RECORD_IS_STREAM | DV_RECORD_TELLS_OF_PLUGIN                                             },
    {"/v1beta1.DevicePlugin/GetPreferredAllocation",
     &dp_v1beta1__preferred_allocation_request__descriptor,
     &dp_v1beta1__preferred_allocation_response__descriptor,            0                        },
    {"/v1beta1.DevicePlugin/Allocate",                            &dp_v1beta1__allocate_request__descriptor,
     &dp_v1beta1__allocate_response__descriptor,                        0                        },
    {"/v1beta1.DevicePlugin/PreStartContainer",
     &dp_v1beta1__pre_start_container_request__descriptor,
     &dp_v1beta1__pre_start_container_response__descriptor,             0                        },
    {"/deviceplugin.Registration/Register",                       &dp_v1alpha2__register_request__descriptor,
     &dp_v1alpha2__empty__descriptor,                                   DV_RECORD_TELLS_OF_PLUGIN},
    {"/deviceplugin.DevicePlugin/ListAndWatch",                   &dp_v1alpha2__empty__descriptor,
     &dp_v1alpha2__list_and_watch_response__descriptor,
     DV_RECORD_IS_STREAM | DV_RECORD_TELLS_OF_PLUGIN                                             },
    {"/deviceplugin.DevicePlugin/Allocate",                       &dp_v1alpha2__allocate_request__descriptor,
     &dp_v1alpha2__allocate_response__descriptor,                       0                        },
    {DRA_V1 "NodePrepareResources",                               &dra_v1__node_prepare_resources_request__descriptor,
     &dra_v1__node_prepare_resources_response__descriptor,              0                        },
    {DRA_V1 "NodeUnprepareResources",                             &dra_v1__node_unprepare_resources_request__descriptor,
     &dra_v1__node_unprepare_resources_response__descriptor,            0                        },
    {DRA_V1BETA1 "NodePrepareResources",                          &dra_v1beta1__node_prepare_resources_request__descriptor,
     &dra_v1beta1__node_prepare_resources_response__descriptor,         0                        },
    {DRA_V1BETA1 "NodeUnprepareResources",
     &dra_v1beta1__node_unprepare_resources_request__descriptor,
     &dra_v1beta1__node_unprepare_resources_response__descriptor,       0                        },
    {"/v1alpha3.Node/NodePrepareResources",
     &dra_v1alpha3__node_prepare_resources_request__descriptor,
     &dra_v1alpha3__node_prepare_resources_response__descriptor,        0                        },
    {"/v1alpha3.Node/NodeUnprepareResources",
     &dra_v1alpha3__node_unprepare_resources_request__descriptor,
     &dra_v1alpha3__node_unprepare_resources_response__descriptor,      0                        },
    {"/v1alpha3.Node/NodeListAndWatchResources",
     &dra_v1alpha3__node_list_and_watch_resources_request__descriptor,
     &dra_v1alpha3__node_list_and_watch_resources_response__descriptor,
     DV_RECORD_IS_STREAM | DV_RECORD_TELLS_OF_PLUGIN                                             },
    {"/v1alpha2.Node/NodePrepareResource",                        &dra_v1alpha2__node_prepare_resource_request__descriptor,
     &dra_v1alpha2__node_prepare_resource_response__descriptor,         0                        },
    {"/v1alpha2.Node/NodeUnprepareResource",
     &dra_v1alpha2__node_unprepare_resource_request__descriptor,
     &dra_v1alpha2__node_unprepare_resource_response__descriptor,       0                        },
    {"/v1alpha1.Node/NodePrepareResource",                        &dra_v1alpha1__node_prepare_resource_request__descriptor,
     &dra_v1alpha1__node_prepare_resource_response__descriptor,         0                        },
    {"/v1alpha1.Node/NodeUnprepareResource",
     &dra_v1alpha1__node_unprepare_resource_request__descriptor,
     &dra_v1alpha1__node_unprepare_resource_response__descriptor,       0                        },
    {"/v1.DRAResourceHealth/NodeWatchResources",
     &health_v1__node_watch_resources_request__descriptor,
     &health_v1__node_watch_resources_response__descriptor,
     DV_RECORD_IS_STREAM | DV_RECORD_TELLS_OF_PLUGIN                                             },
    {"/v1alpha1.DRAResourceHealth/NodeWatchResources",
     &health_v1alpha1__node_watch_resources_request__descriptor,
     &health_v1alpha1__node_watch_resources_response__descriptor,
     DV_RECORD_IS_STREAM | DV_RECORD_TELLS_OF_PLUGIN                                             },
};

const struct dv_record_method *dv_record_method_find(dv_str path)
{
    for (size_t i = 0; i < DV_COUNT(methods); i++)
        if (dv_str_eq(dv_str_from_c(methods[i].path), path))
            return &methods[i];
    return NULL;
}

dv_str dv_record_method_name(dv_str path)
{
    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == '/')
            return dv_str_slice(path, i, path.n);
    return path;
}

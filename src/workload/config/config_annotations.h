/* config_annotations.h - the annotations that a container carries for those who stop it. */
#ifndef DV_WORKLOAD_CONFIG_ANNOTATIONS_H
#define DV_WORKLOAD_CONFIG_ANNOTATIONS_H

#include "base/str.h"

#define NOTE_HASH DV_STR("io.kubernetes.container.hash")
#define NOTE_RESTARTS DV_STR("io.kubernetes.container.restartCount")
#define NOTE_MESSAGE_PATH DV_STR("io.kubernetes.container.terminationMessagePath")
#define NOTE_MESSAGE_POLICY DV_STR("io.kubernetes.container.terminationMessagePolicy")
#define NOTE_DELETION_GRACE DV_STR("io.kubernetes.pod.deletionGracePeriod")
#define NOTE_GRACE DV_STR("io.kubernetes.pod.terminationGracePeriod")
#define NOTE_PRE_STOP DV_STR("io.kubernetes.container.preStopHandler")
#define NOTE_PORTS DV_STR("io.kubernetes.container.ports")

#endif

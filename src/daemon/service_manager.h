/* service_manager.h - what davitd tells the service manager that started it, if there is one.
 *
 * Made of service_manager_systemd.c, or, where davit is built without libsystemd, of
 * service_manager_none.c: then nobody is told, and nobody asks for a watchdog. */
#ifndef DV_DAEMON_SERVICE_MANAGER_H
#define DV_DAEMON_SERVICE_MANAGER_H

#include <stdint.h>

void dv_service_manager_tell_ready(void);
void dv_service_manager_tell_stopping(void);
void dv_service_manager_feed_watchdog(void);
/* How long the manager waits for a sign of life before it ends us; 0: it does not watch. */
uint64_t dv_service_manager_watchdog_us(void);

#endif

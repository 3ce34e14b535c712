/* service_manager_systemd.c - tells systemd that davitd is ready, is stopping, and is alive. */
#include <systemd/sd-daemon.h>

#include "daemon/service_manager.h"

/* A failed sd_notify is ignored in all three: without a manager there is nobody to tell, and one
 * that does not hear us acts by its own deadlines. */

void dv_service_manager_tell_ready(void)
{
    (void)sd_notify(0, "READY=1");
}

void dv_service_manager_tell_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}

void dv_service_manager_feed_watchdog(void)
{
    (void)sd_notify(0, "WATCHDOG=1");
}

uint64_t dv_service_manager_watchdog_us(void)
{
    uint64_t limit_us;

    return sd_watchdog_enabled(0, &limit_us) > 0 ? limit_us : 0;
}

/**
 * In: the permissions of a key, and the route of its request. Out: nothing if the key may read the route, else the
 *   refusal, which names what is missing.
 * Promises: a request needs one permission, that of its route. For an unknown path, any permission is enough. A key
 *   without permissions gets 403 for every path.
 */

import type { KeyHolder } from '../../core/reading/index.ts'
import { Refusal } from '../../core/runtime/index.ts'
import { permissionOfPath } from '../../schemas/resources.ts'
import { BASE_PATH } from '../http/request.ts'

/** @param route the pattern of the route; undefined for an unknown path. @throws Refusal `forbidden` */
export const requirePermission = ({ permissions }: KeyHolder, route: string | undefined): void => {
  if (permissions.size === 0) throw new Refusal('forbidden', { message: 'This API key has no permission.' })
  if (route === undefined || permissions.has('read')) return
  const needed = permissionOfPath.get(route.slice(BASE_PATH.length + 1).split('/', 1)[0] ?? '')
  // A route that no permission names would be a defect: then only a key with `read` reads it.
  if (needed !== undefined && permissions.has(needed)) return
  throw new Refusal('forbidden', { message: `This API key lacks the permission ${needed ?? 'read'}.` })
}

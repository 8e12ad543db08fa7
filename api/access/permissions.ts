/**
 * In: the permissions of a key, and the route and the query of its request. Out: nothing if the key may read them, else
 *   the refusal, which names what is missing.
 * Promises: a request needs the permission of its route. For the totals of one rep or one deal it needs those of the
 *   records that are added, too, and for a checkpoint that of totals. For an unknown path, any permission is enough. A
 *   key without permissions gets 403 for every path.
 */

import { hasParameter, type KeyHolder } from '../../core/reading/index.ts'
import { Refusal } from '../../core/runtime/index.ts'
import {
  permissionOfPath,
  permissionsOfCheckpoints,
  permissionsOfDealTotals,
  permissionsOfRepTotals,
} from '../../schemas/resources.ts'
import { BASE_PATH } from '../http/request.ts'

/** @param route the pattern of the route; undefined for an unknown path. @throws Refusal `forbidden` */
export const requirePermission = ({ permissions }: KeyHolder, route: string | undefined, query: string): void => {
  if (permissions.size === 0) throw new Refusal('forbidden', { message: 'This API key has no permission.' })
  if (route === undefined || permissions.has('read')) return
  const [path = ''] = route.slice(BASE_PATH.length + 1).split('/', 1)
  const totalsOf = (name: string): boolean => path === 'totals' && hasParameter(query, name)
  // A route that no permission names would be a defect: then only a key with `read` reads it.
  const needed = [
    permissionOfPath.get(path) ?? 'read',
    ...(totalsOf('rep_id') ? permissionsOfRepTotals : []),
    ...(totalsOf('deal_id') ? permissionsOfDealTotals : []),
    ...(path === 'checkpoint' ? permissionsOfCheckpoints : []),
  ]
  const missing = needed.find(permission => !permissions.has(permission))
  if (missing !== undefined)
    throw new Refusal('forbidden', { message: `This API key lacks the permission ${missing}.` })
}

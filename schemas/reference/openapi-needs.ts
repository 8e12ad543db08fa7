/** The permissions that an operation needs, as the OpenAPI document says them. */
import {
  permissionOfPath,
  permissionsOfCheckpoints,
  permissionsOfDealTotals,
  permissionsOfRepTotals,
} from '../lists.ts'

/** The first word of a path. */
export const tagOfPath = (path: string): string => path.split('/')[0] ?? path

export const needsOf = (path: string): string => {
  const listOf = (names: readonly string[]): string => names.map(name => `\`${name}\``).join(' and ')
  const ofRep = ` With \`rep_id\` also ${listOf(permissionsOfRepTotals)}, or \`read\`: the amounts are the pay of a person.`
  const ofDeal = ` With \`deal_id\` also ${listOf(permissionsOfDealTotals)}, or \`read\`: the amounts are lines of payouts.`
  const more = path === 'totals' ? `${ofRep}${ofDeal}` : ''
  if (path === 'checkpoint') {
    const all = listOf([permissionOfPath.get(path) ?? '', ...permissionsOfCheckpoints])
    return `Needs the permissions ${all}, or \`read\`.`
  }
  return `Needs the permission \`${permissionOfPath.get(tagOfPath(path))}\` or \`read\`.${more}`
}

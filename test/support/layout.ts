/** Addresses and generations for tests that name an index themselves. */
import { layoutOfNew } from '../../core/store/generations/prepare.ts'
import type { Generation } from '../../core/store/positions/position.ts'
import { type Address, type GenerationLayout, layoutOf } from '../../schemas/stored/layout.ts'

/** The address of a document that is routed by its id. */
export const addressIn = (_index: string, _id: string): Address => ({ _index, _id, routing: undefined })

/** A document of a kind is in the index of this name. */
export const layoutIn = (indexOf: (kind: string) => string): Pick<GenerationLayout, 'addressOf' | 'storedWith'> => ({
  storedWith: () => '',
  addressOf: (kind, id) => addressIn(indexOf(kind), id),
})

/** The fields that say the layout of a new generation, as the settings of this test file make it. */
export let newLayout = layoutOfNew({ shards: 1 })

/** Says that projectors of this test file have ELASTICSEARCH_ROUTING_PARTITION_SIZE. Returns the setting. */
export const routeGenerations = (shards: number, routingPartitionSize: number): Record<string, string> => {
  newLayout = layoutOfNew({ shards, routingPartitionSize })
  return { ELASTICSEARCH_ROUTING_PARTITION_SIZE: String(routingPartitionSize) }
}

/** The layout of a new generation. */
export const layoutOfFresh = (prefix: string, generation = 'g1'): GenerationLayout =>
  layoutOf(prefix, { generation, topic: '', ...newLayout })

/** A generation that readers read. */
export const generationOf = (given: Partial<Omit<Generation, 'layout'>> = {}, prefix = 'p'): Generation => {
  const name = given.name ?? 'g1'
  return {
    name,
    id: name,
    log: 'l',
    source: 's',
    partitions: 1,
    rules: 1,
    ...given,
    layout: layoutOf(prefix, { generation: name, topic: 't' }),
  }
}

/** Two generations without records, one of which changes while `verify` compares them. */
import { expect, test } from 'vitest'
import { generationId, LIVE_ID, positionId } from '../../../schemas/stored/documents.ts'
import { CommandError } from '../../../tools/failures.ts'
import { verify } from '../../../tools/generations/verify.ts'
import { MemoryElasticsearch } from '../../support/memory-elasticsearch.ts'

const verified = async (meanwhile: (engine: MemoryElasticsearch) => void = () => undefined) => {
  const engine = new MemoryElasticsearch()
  for (const generation of ['g1', 'g2']) {
    const body = { generation, topic: 't', cluster_id: 'c', partitions: 1, rules_version: 1 }
    engine.put('p-control', generationId(generation), 1, { kind: 'generation', body })
    const place = { position: 10, last: null, at: 1, time: 2, serve_from: 0 }
    engine.put('p-control', positionId(generation, 0), 1, { kind: 'position', body: place })
  }
  engine.put('p-control', LIVE_ID, 1, { kind: 'live', body: { generation: 'g1', kept: ['g1', 'g2'] } })
  engine.onRequest = ({ path }) => {
    if (!path.endsWith('/_pit')) return
    engine.onRequest = () => undefined
    meanwhile(engine)
  }
  const printed: string[] = []
  const context = {
    ...{
      send: engine.send,
      prefix: 'p',
      out: (text: unknown) => void printed.push(String(text)),
      say: () => undefined,
    },
    ...{ now: () => 0, elapsed: () => 0, sleep: async () => undefined },
  }
  const answer = await verify({ a: 'g1', b: 'g2', org: undefined, json: false }, context).catch(
    (error: unknown) => error,
  )
  const { compared = {} } = (engine.all('p-control')[LIVE_ID]?.source.body ?? {}) as { compared?: object }
  return { answer, printed, compared }
}

test('two generations that stay the same are noted as equal', async () => {
  expect(await verified()).toMatchObject({
    answer: 0,
    compared: { 'g1 g2': { found: 'equal', copies: { length: 2 } } },
  })
})

test('a generation that is read again after adopt while it is compared ends the comparison, and nothing is noted', async () => {
  const position = { position: 10, last: null, at: 1, time: 2, serve_from: 10, taken_back: 1 }
  for (const generation of ['g1', 'g2']) {
    const found = await verified(engine =>
      engine.put('p-control', positionId(generation, 0), 2, { kind: 'position', body: position }),
    )
    const why = `${generation} was made anew, or read again after adopt or rewind, meanwhile: run the same again`
    expect(found).toEqual({ answer: new CommandError(why), printed: [], compared: {} })
  }
})

/** A read whose items are not answered is retried as one whose request is not. */
import { expect, test } from 'vitest'
import { Unanswered } from '../../../../core/runtime/index.ts'
import { type Ask, getFromPrimaries, type Send, sendWhole } from '../../../../core/store/index.ts'

const address = { _index: 'control', _id: 'position:g1:0', routing: undefined }
const item = (more: object) => ({ status: 200, body: { items: [{ update: { ...address, ...more } }] } })
const away = item({ status: 503, error: { type: 'unavailable_shards_exception' } })
const found = item({ status: 200, result: 'noop', _version: 1, get: { _source: { position: 7 } } })

/** Answers with these, the last one again and again. */
const answering = (...answers: readonly object[]) => {
  let sent = 0
  const send = (async () => answers[Math.min(sent++, answers.length - 1)]) as unknown as Send
  return { send, sent: () => sent }
}

test('a document whose shard is away for a moment is asked for again by whoever retries requests', async () => {
  const { send, sent } = answering(away, away, found)
  const retrying: Ask = async asked => {
    for (;;) {
      try {
        return await sendWhole(send, asked)
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
      }
    }
  }
  const documents = await getFromPrimaries(retrying, [address])
  expect(documents).toEqual([{ _id: address._id, found: true, _version: 1, _source: { position: 7 } }])
  expect(sent()).toBe(3)
})

test('without retries, a document whose shard is away is unanswered', async () => {
  const { send } = answering(away)
  await expect(getFromPrimaries(send, [address])).rejects.toThrow(Unanswered)
  await expect(getFromPrimaries(asked => sendWhole(send, asked), [address])).rejects.toThrow(Unanswered)
})

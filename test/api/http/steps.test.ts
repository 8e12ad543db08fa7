/** The steps of a request, put together. */
import { expect, test } from 'vitest'
import { type Context, startSteps } from '../../../api/http/request.ts'

type Given = { readonly id: string }
const requested = () => ({ state: { id: 'request_1' } }) as Context<Given>

test('what a step adds is known to the steps behind it, and to those around it once they have ended', async () => {
  const seen: string[] = []
  const run = startSteps<Given>()
    .step(async (ctx: Context<Given & { readonly key?: string }>, next) => {
      seen.push(`${ctx.state.id} before: ${ctx.state.key}`)
      await next()
      seen.push(`after: ${ctx.state.key}`)
    })
    .step<{ readonly key: string }>((_, next) => next({ key: 'key_1' }))
    .step(({ state: { id, key } }, next) => {
      seen.push(`${id} with ${key}`)
      return next()
    })
    .end(async ({ state: { key } }) => void seen.push(`answered to ${key}`))
  await run(requested())
  expect(seen).toEqual(['request_1 before: undefined', 'request_1 with key_1', 'answered to key_1', 'after: key_1'])
})

test('a step that answers ends the request: nothing behind it runs', async () => {
  const seen: string[] = []
  const run = startSteps<Given>()
    .step(async () => void seen.push('refused'))
    .step(async (_, next) => {
      seen.push('next')
      await next()
    })
    .end(async () => void seen.push('answered'))
  await run(requested())
  expect(seen).toEqual(['refused'])
})

test('the error of a step reaches the steps around it', async () => {
  const run = startSteps<Given>()
    .step((_, next) => next().catch(error => Promise.reject(new Error(`around: ${error.message}`))))
    .end(() => Promise.reject(new Error('refused')))
  await expect(run(requested())).rejects.toThrow('around: refused')
})

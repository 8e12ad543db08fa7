/** The state of a request that a test lets answer. */
import type { Answering } from '../../api/answer/answer-page.ts'

/** Returns the state of a request whose reads are not audited, and whose answer holds no bytes. */
export const answering = (): Answering => ({
  path: '/',
  query: '',
  baseAddress: () => '',
  audited: undefined,
  refundUnit: () => undefined,
  reservation: { add: () => undefined, held: () => 0, deliver: () => undefined, close: () => undefined },
  form: { isFixed: () => false, sealState: undefined },
})

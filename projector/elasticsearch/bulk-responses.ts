/**
 * The answer to a bulk request, as text: a list with the result of each document. Almost always the result is "written"
 * for all of them, in the order in which they were sent. Then the whole text is known, but for one digit of each
 * result. To compare it is a tenth of the work of parsing it and looking at the objects. Any other answer is parsed and
 * read.
 */
import { Serializer } from '@elastic/transport'
import { Unavailable } from './client.ts'

const BEGINNING = '{"items":['

export class BulkAnswer {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }

  /** @throws Unavailable when it is no JSON */
  get items(): unknown {
    return this.#parsed.items
  }

  /** What an answer that is none has beside. @throws Unavailable when it is no JSON */
  get error(): unknown {
    return this.#parsed.error
  }

  get #parsed(): { readonly items?: unknown; readonly error?: unknown } {
    try {
      return JSON.parse(this.text)
    } catch {
      throw new Unavailable(0)
    }
  }

  /**
   * Whether it says of exactly these documents, in this order, that each is written now. "No" may be wrong, "yes" never
   * is.
   */
  saysWritten(documents: readonly { readonly index: string; readonly id: string }[]): boolean {
    let expected = BEGINNING
    let between = ''
    for (const { index, id } of documents) {
      expected += `${between}{"index":{"_index":"${index}","_id":"${id}",${CREATED}`
      between = ','
    }
    // No name has a quote in it: these are statuses and nothing else.
    return this.text.replaceAll(REPLACED, CREATED) === `${expected}]}`
  }
}

const CREATED = '"status":201}}'
const REPLACED = '"status":200}}'

/** The client's reader of answers, which leaves those to bulk requests as they are. */
export class AnswerReader extends Serializer {
  override deserialize<Body = unknown>(json: string): Body {
    return json.startsWith(BEGINNING) ? (new BulkAnswer(json) as Body) : super.deserialize<Body>(json)
  }
}

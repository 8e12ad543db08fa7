/**
 * The answer to a bulk request, as text: a list of what became of each document. Almost always that is "written" for
 * all of them, in the order they were sent, and then the text is known but for a digit each: to compare it is a tenth
 * of the work of making it into objects and looking at those. Whatever else it is, it is parsed, and read as such.
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

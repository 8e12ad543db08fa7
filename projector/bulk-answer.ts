/**
 * The answer to a bulk request, as text: a list of what became of each document. Almost always that is "written" for all of them,
 * in the order they were sent, and then the text is known but for a digit each: to compare it is a tenth of the work of making it
 * into objects and looking at those. Whatever else it is, it is parsed, and read as such.
 */
import { Serializer } from '@elastic/transport'
import { Unavailable } from './elasticsearch.ts'

const BEGINNING = '{"items":['

export class BulkAnswer {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }

  /** @throws Unavailable when it is no JSON */
  get items(): unknown {
    try {
      return JSON.parse(this.text).items
    } catch {
      throw new Unavailable(0)
    }
  }

  /** Whether it says of exactly these documents, in this order, that each is written now. "No" may be wrong, "yes" never is. */
  saysWritten(documents: readonly { readonly index: string; readonly id: string }[]): boolean {
    const { text } = this
    let at = 0
    /** Passes over what is expected there. */
    const pass = (expected: string): boolean => {
      if (!text.startsWith(expected, at)) return false
      at += expected.length
      return true
    }
    for (const [place, { index, id }] of documents.entries()) {
      if (!pass(place === 0 ? FIRST : NEXT) || !pass(index) || !pass(ID) || !pass(id) || !pass(STATUS)) return false
      // 200 or 201: replaced or created.
      if (!pass('0') && !pass('1')) return false
    }
    return pass(END) && at === text.length
  }
}

const ITEM = '{"index":{"_index":"'
const FIRST = `${BEGINNING}${ITEM}`
const ID = '","_id":"'
const STATUS = '","status":20'
const NEXT = `}},${ITEM}`
const END = '}}]}'

/** The client's reader of answers, which leaves those to bulk requests as they are. */
export class AnswerReader extends Serializer {
  override deserialize<Body = unknown>(json: string): Body {
    return json.startsWith(BEGINNING) ? (new BulkAnswer(json) as Body) : super.deserialize<Body>(json)
  }
}

/** An answer that was read to its end. The check that it is whole has parsed its JSON: nobody parses it again. */
export class WholeAnswer extends Response {
  override readonly text: () => Promise<string>
  override readonly json: () => Promise<unknown>

  /** @param value the parsed text, for one reader only, who may change it */
  constructor(text: string, value: unknown, headers: Headers) {
    const whole = new Headers(headers)
    // Without a length, openapi-fetch asks for the text, and parses it again.
    whole.set('Content-Length', String(text.length))
    super(null, { headers: whole })
    this.text = async () => text
    this.json = async () => value
  }
}

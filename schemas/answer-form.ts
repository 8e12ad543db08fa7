/**
 * Version of the form of the API's answers: how their bytes are made from stored documents. Every entity tag contains
 * it, so that no client keeps another form. Raise it with any change of the bytes (see test/golden/answers.test.ts).
 */
export const ANSWER_FORM = 4

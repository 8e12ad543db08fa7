/**
 * The version of the form of the API's answers: how their bytes are made of what is stored. It is part of every entity
 * tag, so that no client keeps an answer of another form. To be raised with any change of these bytes:
 * test/golden/answers.test.ts says so.
 */
export const ANSWER_FORM = 1

/** Signed notes of C2SP, with the example that the reference implementation (golang.org/x/mod/sumdb/note) publishes. */
import { expect, test } from 'vitest'
import {
  checkNote,
  createSigningKey,
  isSignerName,
  parseNote,
  parseSigningKey,
  parseVerifierKey,
  type SigningKey,
  signNote,
  textOfSigningKey,
  textOfVerifierKey,
} from '../../../../core/runtime/signing/note.ts'

const SECRET = 'PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz'
const PUBLIC = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
const TEXT = `If you think cryptography is the answer to your problem,
then you don't know what your problem is.
`
const SIGNATURE = 'x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM='
const NOTE = `${TEXT}\n\u2014 PeterNeumann ${SIGNATURE}\n`

const bytes = (text: string): Buffer => Buffer.from(text)
const secretKey = (): SigningKey => parseSigningKey(SECRET) as SigningKey
const outcomeOf = (note: string, ...keys: string[]): string => {
  const parsed = parseNote(bytes(note))
  const known = keys.flatMap(key => parseVerifierKey(key) ?? [])
  return parsed === undefined ? 'no note' : checkNote(parsed, known).outcome
}

test('a note is signed with the bytes of the reference implementation, and its own note is known as signed', () => {
  expect(signNote(bytes(TEXT), secretKey()).toString()).toBe(NOTE)
  expect(parseNote(bytes(NOTE))?.text.toString()).toBe(TEXT)
  expect(outcomeOf(NOTE, PUBLIC)).toBe('signed')
})

test('keys are read and written in the forms of the reference implementation, with its ids', () => {
  expect(textOfVerifierKey(secretKey().verifier)).toBe(PUBLIC)
  expect(textOfSigningKey(secretKey())).toBe(SECRET)
  const fresh = createSigningKey('commission.example/close')
  expect(parseSigningKey(textOfSigningKey(fresh))?.id).toBe(fresh.id)
  const verifier = textOfVerifierKey(fresh.verifier)
  const signed = signNote(bytes('a\n'), fresh).toString()
  expect([outcomeOf(signed, verifier), outcomeOf(signed, PUBLIC)]).toEqual(['signed', 'unknown'])
})

test('a key of another form, cut, changed, or with the id of another key is no key', () => {
  const cut = Array.from(PUBLIC, (_, at) => [PUBLIC.slice(0, at), PUBLIC.slice(at + 1)]).flat()
  const changed = Array.from(PUBLIC, (character, at) => {
    const other = String.fromCharCode(character.charCodeAt(0) + 1)
    return `${PUBLIC.slice(0, at)}${other}${PUBLIC.slice(at + 1)}`
  })
  for (const text of [...cut, ...changed]) expect([text, parseVerifierKey(text)]).toEqual([text, undefined])
  for (const text of [PUBLIC, SECRET.replace('c74f20a3', 'c74f20a4'), SECRET.slice(0, -1)]) {
    expect(parseSigningKey(text)).toBeUndefined()
  }
})

test('any changed character of a note ends its signature', () => {
  for (const at of Array.from(NOTE, (_, at) => at)) {
    const changed = `${NOTE.slice(0, at)}${NOTE[at] === 'x' ? 'y' : 'x'}${NOTE.slice(at + 1)}`
    expect([changed, outcomeOf(changed, PUBLIC)]).not.toEqual([changed, 'signed'])
  }
})

test('signatures of unknown keys are skipped, and one wrong signature of a known key refuses the note', () => {
  const [ours, other] = [createSigningKey('ours'), createSigningKey('other')]
  const line = (key: SigningKey, text: string) => signNote(bytes(text), key).toString().split('\n\n')[1] ?? ''
  const of = (...lines: string[]) => `text\n\n${lines.join('')}`
  const key = textOfVerifierKey(ours.verifier)
  expect(outcomeOf(of(line(other, 'text\n'), line(ours, 'text\n')), key)).toBe('signed')
  expect(outcomeOf(of(line(ours, 'other text\n'), line(other, 'text\n')), key)).toBe('wrong')
  const both = [key, textOfVerifierKey(other.verifier)]
  expect(outcomeOf(of(line(ours, 'other text\n'), line(other, 'text\n')), ...both)).toBe('wrong')
  expect(outcomeOf(of(line(other, 'text\n')), ...both)).toBe('signed')
  expect(outcomeOf(of(line(other, 'text\n')))).toBe('unknown')
})

test.each([
  '',
  TEXT,
  `${TEXT}\n`,
  `${TEXT}\n\n`,
  NOTE.trimEnd(),
  NOTE.replace('\u2014', '-'),
  NOTE.replace('\n\u2014', '\n \u2014'),
  NOTE.replace('If', 'I\tf'),
  NOTE.replace(' PeterNeumann', ' Peter Neumann'),
  `${NOTE}more\n`,
  `${TEXT}\n${`\u2014 PeterNeumann ${SIGNATURE}\n`.repeat(101)}`,
])('%j is no note', note => {
  expect(outcomeOf(note, PUBLIC)).toBe('no note')
})

test('names of signers have no spaces, plus signs or control characters', () => {
  const names = ['', 'a b', 'a+b', 'a\nb', 'a\u0085b', 'a\u2003b', '\ud800']
  expect(names.filter(isSignerName)).toEqual([])
  expect(['a', 'commission.example/close', 'Prüfer'].filter(isSignerName)).toHaveLength(3)
})

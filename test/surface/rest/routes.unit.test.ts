/** The path template that a path matches does not depend on the order of the templates. */
import { expect, test } from 'vitest'
import { matcher } from '../../../src/surface/rest/routes.ts'

const templates = [
  '/{x}',
  '/a',
  '/a/{x}',
  '/a/b/c/d',
  '/a/{x}/e',
  '/{x}/b/{y}',
  '/a/b/{y}',
  '/%C3%A4/b',
]

test.each([
  ['/a', '/a'],
  ['/b', '/{x}', 'b'],
  ['/a/b', '/a/{x}', 'b'],
  ['/a/b/c', '/a/b/{y}', 'c'],
  ['/a/b/c/d', '/a/b/c/d'],
  // If a literal segment leads to no match, the parameter beside it is tried.
  ['/a/c/e', '/a/{x}/e', 'c'],
  ['/c/b/e', '/{x}/b/{y}', 'c', 'e'],
  // The leftmost literal wins.
  ['/a/b/e', '/a/b/{y}', 'e'],
  ['/ä/b', '/%C3%A4/b'],
  ['/%c3%a4/%62', '/%C3%A4/b'],
  ['/%61/%zz', '/a/{x}', '%zz'],
  ['/%zz', '/{x}', '%zz'],
  ['/a%2Fb', '/{x}', 'a%2Fb'],
  ['', undefined],
  ['/', undefined],
  ['/a/', undefined],
  ['//b/c', undefined],
  ['/b/c', undefined],
  ['/a/b/c/d/e', undefined],
])('%j matches %s', (path, template, ...inPath) => {
  for (const order of [templates, templates.toReversed()]) {
    const match = matcher(order.map((known) => ({ method: 'GET', path: known, handler: known })))(
      path,
    )
    expect(match?.methods.get('GET')).toBe(template)
    if (template !== undefined) expect(match).toMatchObject({ allow: 'GET, HEAD', inPath })
  }
})

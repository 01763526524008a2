/** The docs page: the OpenAPI document as HTML, written once at the start, readable without scripts. */
import { inline, type OpenApi, readDocument } from './document.ts'
import { codeBlock, type Html, html, phrase, prose } from './html.ts'
import { operation } from './operation.ts'
import { content } from './schema.ts'

/** The page of a document, which is given as its JSON. */
export function docsPage(text: string): string {
  const document = readDocument(text)
  const { info } = document
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${info.title}: the REST interface</title>
    <link rel="icon" href="icon.svg">
    <link rel="stylesheet" href="docs.css">
    <script src="docs.js" type="module"></script>
  </head>
  <body>
    <header>
      <a class="brand" href="#top"><img src="icon.svg" alt="" width="32" height="32">${info.title}</a>
      <search hidden>
        <label for="search">Search</label>
        <input id="search" type="search" autocomplete="off" autocapitalize="off" placeholder="cursor, POST, 404 …">
      </search>
    </header>
    <main id="top">
      <h1>${info.title} <small>${info.version}</small></h1>
      <p id="found" role="status"></p>
      ${introduction(document)}
      ${authentication(document)}
      ${document.tags.map((tag) => section(document, tag))}
      ${schemas(document)}
      ${headers(document)}
    </main>
  </body>
</html>
`.text
}

function introduction({ info, servers, paths }: OpenApi): Html {
  return html`
    <div class="introduction">
      <div>
        ${prose(info.description)}
        <nav aria-label="Operations">
          <ul>
            ${operationsOf(paths).map(
              ({ method, path, object: { operationId, summary } }) =>
                html`<li><a href="#${operationId}"><code>${method} ${path}</code> ${summary}</a></li>`,
            )}
          </ul>
        </nav>
      </div>
      <dl class="facts">
        ${servers.map(
          ({ url, description }) =>
            html`<div><dt>${description}</dt><dd><code class="server">${url}</code></dd></div>`,
        )}
        <div id="here" hidden><dt>This page sends to</dt><dd><code class="target"></code></dd></div>
        <div><dt>OpenAPI</dt><dd><a href="../v1/openapi.json">openapi.json</a></dd></div>
        <div><dt>License</dt><dd>${info.license.name}</dd></div>
      </dl>
    </div>`
}

function authentication({ components }: OpenApi): Html {
  return html`
    <section aria-labelledby="authentication">
      <h2 id="authentication">Authentication</h2>
      <dl class="fields">
        ${Object.entries(components.securitySchemes).map(
          ([name, { type, scheme, description }]) => html`
        <div>
          <dt><code class="name">${name}</code> <span class="type">${type} ${scheme}</span></dt>
          <dd>${prose(description)}</dd>
        </div>`,
        )}
      </dl>
    </section>`
}

const operationsOf = (paths: OpenApi['paths']) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, object]) => ({
      method: method.toUpperCase(),
      path,
      object,
    })),
  )

function section(document: OpenApi, tag: OpenApi['tags'][number]): Html {
  const pieces = operationsOf(document.paths)
    .filter(({ object }) => object.tags.includes(tag.name))
    .map(({ method, path, object }) => operation(document, method, path, object))
  return html`
    <section aria-labelledby="tag-${tag.name}">
      <h2 id="tag-${tag.name}">${tag.name}</h2>
      ${prose(tag.description)}
      ${pieces}
    </section>`
}

function schemas(document: OpenApi): Html {
  const pieces = Object.entries(document.components.schemas).map(
    ([name, schema]) => html`
      <details class="entry" data-entry="schema" id="schema-${name}">
        <summary><h3><code>${name}</code> <span class="title">${phrase(schema.description)}</span></h3></summary>
        <div class="inside">${content(document, schema)}</div>
      </details>`,
  )
  return html`
    <section aria-labelledby="schemas">
      <h2 id="schemas">Schemas</h2>
      <div class="columns">${pieces}</div>
    </section>`
}

function headers({ components }: OpenApi): Html {
  const pieces = Object.entries(components.headers).map(
    ([name, { description, example }]) => html`
      <details class="entry" data-entry="header" id="header-${name}">
        <summary><h3><code>${name}</code></h3></summary>
        <div class="inside">
          ${prose(description)}
          ${codeBlock('Example', `${name}: ${inline(example)}`)}
        </div>
      </details>`,
  )
  return html`
    <section aria-labelledby="headers">
      <h2 id="headers">Response headers</h2>
      <div class="columns">${pieces}</div>
    </section>`
}

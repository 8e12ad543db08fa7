# The project's own image: the projector, the API, the creation of the topics and the commands. The command says which one runs.
FROM node:24.21-slim AS files
WORKDIR /image/app
COPY package.json package-lock.json .npmrc ./
# --omit=optional would be wrong: the native parts of snappy and lz4 are optional packages, and are needed. The package of
# Node is optional, too, and is removed: the base image has Node. Types and source maps, half of the rest, are removed.
RUN npm ci --omit=dev --ignore-scripts \
 && rm -rf package-lock.json .npmrc node_modules/.bin node_modules/.package-lock.json node_modules/node-linux-* \
 && find node_modules/swagger-ui-dist -type f ! -name swagger-ui-bundle.js ! -name swagger-ui.css ! -name package.json ! -name 'LICENSE*' ! -name NOTICE -delete \
 && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
COPY schemas schemas
COPY core core
COPY projector projector
COPY api api
COPY tools tools
COPY contract/records.ndjson contract/
# The modes and times of a clone differ from machine to machine. With one mode and one time for all, two builds give the same layer.
RUN chmod -R u=rwX,go=rX /image/app && find /image/app -exec touch -h -d @0 {} +

FROM node:24.21-slim
ENV NODE_ENV=production NODE_OPTIONS=--disable-warning=TimeoutNegativeWarning
# One layer, and before WORKDIR: if WORKDIR made the directory, it would have the time of the build.
COPY --from=files /image /
WORKDIR /app

LABEL org.opencontainers.image.title=commission-api \
      org.opencontainers.image.description="Projects commission events from Kafka into Elasticsearch and serves them over a read-only HTTP API" \
      org.opencontainers.image.version=1.1.0
# The process that runs here, projector or API, tells on its admin port whether it is alive. Kubernetes has its own probes.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 CMD ["node", "-e", "const live = port => fetch(`http://127.0.0.1:${port}/livez`).then(({ ok }) => ok || Promise.reject()); Promise.any([live(process.env.API_ADMIN_PORT || 9464), live(process.env.PROJECTOR_ADMIN_PORT || 9465)]).then(() => process.exit(0), () => process.exit(1))"]

# The user owns nothing in /app, and the processes write no file there: the root file system may be read-only. The user is
# `node`, as a number: Kubernetes checks that a user is not root, and cannot check a name.
USER 1000:1000
# Without the base image's shell script in front: Node gets the signals.
ENTRYPOINT []
CMD ["node", "--max-semi-space-size=16", "projector/main.ts"]

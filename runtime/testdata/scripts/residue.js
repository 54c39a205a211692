// Leaves a secret wherever a script can, and looks for the secrets of others wherever
// it can reach: testdata/residue for an interpreter, whose memory the host looks into.
const left = [], size = 32, names = Object.keys(globalThis).length;

// secrets puts secrets together, in hexadecimal.
function secrets(shares = "") {
	const found = [];
	for (; shares.length >= 4 * size; shares = shares.slice(4 * size)) {
		let text = "";
		for (let i = 0; i < 2 * size; i += 2) {
			const byte = parseInt(shares.slice(i, i + 2), 16) ^ parseInt(shares.slice(2 * size + i, 2 * size + i + 2), 16);
			text += byte.toString(16).padStart(2, "0");
		}
		found.push(text);
	}
	return found;
}

function fill(secret) {
	const bytes = Uint8Array.from(secret.match(/../g), pair => parseInt(pair, 16));
	left.push(secret, bytes, bytes.map(b => b ^ 0xa5));
	for (let i = 0; i < 200; i++) {
		const page = new Uint8Array(4096);
		for (let at = 0; at < page.length; at += 16 * size) page.set(bytes, at);
		left.push(page, secret + i);
	}
	globalThis["kept" + secret] = () => secret;
	Array.prototype.kept = secret;
	console.log(secret);
	files.mkdir("/tmp/" + secret);
	files.write("/tmp/" + secret.slice(0, 16), secret);
}

function seek(wanted) {
	const found = [];
	if (left.length > 0 || Object.keys(globalThis).length !== names || [].kept !== undefined) found.push("global 0");
	for (const name of files.list("/tmp")) found.push("scratch 0");
	for (const name of files.list("/data")) if (wanted.includes(files.read("/data/" + name))) found.push("volume 0");
	return found.join("\n");
}

export default {
	trade({seek: wanted, own, fillFirst, end}) {
		const mine = () => secrets(own).forEach(fill);
		if (fillFirst) mine();
		const text = seek(secrets(wanted));
		if (!fillFirst) mine();
		if (end === "spin") for (;;);
		if (end === "trap" || end === "exit") throw new Error("ended");
		return {content: [{type: "text", text}], isError: end === "error"};
	},

	keep({own}) {
		files.write("/data/kept", secrets(own)[0]);
		return "";
	},
};
